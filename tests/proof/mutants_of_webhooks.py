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
    Mutant(
        "ended-and-told-to-nobody",
        "an event is written in the commit that ends its task",
        (
            Edit(
                "db/sql/ledger.sql",
                "    WHERE EXISTS (SELECT FROM webhook_endpoints AS endpoint\n",
                "    WHERE false AND EXISTS (SELECT FROM webhook_endpoints AS endpoint\n",
            ),
        ),
        ("tests/lifecycle/test_notify.py::test_a_ready_task_is_told_once_in_its_settlement_s_words",),
        seen_as="(AssertionError|assert |ValueError: not enough values to unpack)",
    ),
    Mutant(
        "a-refusal-is-taken-for-a-delivery",
        "only a 2xx means that it was heard",
        (Edit("domain/webhook.py", "if 200 <= self.status < 300:", "if 200 <= self.status < 500:"),),
        ("tests/lifecycle/test_notify.py::test_everything_else_is_tried_again",),
    ),
)
