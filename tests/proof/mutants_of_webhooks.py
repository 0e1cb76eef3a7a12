"""Mutants of what customers are told: an event under one id, each try under its own time, signed or not at all."""

from __future__ import annotations

from tests.proof.mutants_form import Edit, Mutant

NOTIFY = "lifecycle/notify.py"
ONE_ID = "tests/lifecycle/test_notify.py::test_the_id_is_one_for_all_endpoints_and_tries_and_the_time_is_each_try_s"

OF_WEBHOOKS: tuple[Mutant, ...] = (
    Mutant(
        "time-of-the-event-at-each-try",
        "a late try is no stale one to its receiver",
        (
            Edit(
                NOTIFY,
                "            int(delivery.now.timestamp()),\n",
                "            int(delivery.event_at.timestamp()),\n",
            ),
        ),
        (ONE_ID,),
    ),
    Mutant(
        "another-id-at-each-try",
        "a receiver can tell a second try from a second event",
        (
            Edit(
                NOTIFY,
                '            f"evt_{delivery.event_id.hex}",\n',
                '            f"evt_{delivery.event_id.hex}{number}",\n',
            ),
        ),
        (ONE_ID,),
    ),
    Mutant(
        "told-without-a-signature",
        "nothing is sent that anybody could have sent",
        (Edit(NOTIFY, "        if not letter.secrets:\n", "        if False:\n"),),
        ("tests/field/test_field_webhooks.py::test_K08_without_a_secret_nothing_is_sent_and_it_is_said",),
    ),
)
