"""The main job, verb by verb."""

from safelight.domain.task import State
from tests.world import World


async def test_a_polled_task_goes_from_accepted_to_ready_and_captures_its_hold(world: World) -> None:
    task_id = await world.submit("lab-poll")
    assert await world.balance() == (999, 1)
    await world.dispatch("lab-poll")
    assert await world.state(task_id) is State.RUNNING
    await world.until_drawn()
    await world.pass_time(seconds=60)
    assert await world.look("lab-poll") == 1
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert await world.balance() == (999, 0)


async def test_a_synchronous_answer_is_staged_and_archived(world: World) -> None:
    task_id = await world.submit("lab-sync", n=2)
    await world.dispatch("lab-sync")
    assert await world.state(task_id) is State.ARCHIVING
    await world.archive_all()
    assert await world.state(task_id) is State.SUCCEEDED
    assert await world.balance() == (998, 0)
    assert await world.value("SELECT count(*) FROM assets WHERE task_id = $1", task_id) == 2
