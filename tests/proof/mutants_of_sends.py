"""Mutants of what goes out: intents, sends, leases, what may have been accepted, and copies of results."""

from __future__ import annotations

from tests.proof.mutants_form import Edit, Mutant

DISPATCH = "tests/lifecycle/test_dispatch.py::"
UNCERTAIN = "tests/lifecycle/test_uncertain.py::"
LOCAL = "tests/assets/test_local.py::"
ARCHIVE = "lifecycle/archive.py"

OF_SENDS: tuple[Mutant, ...] = (
    Mutant(
        "intent-after-the-send",
        "an attempt is committed before the provider hears of it",
        (
            Edit(
                "lifecycle/dispatch.py",
                "gate.now.date()),\n            )\n",
                "gate.now.date()),\n            )\n"
                "            for task, attempt in claimed:\n"
                "                await self.try_send(provider, task, attempt)\n",
            ),
        ),
        (f"{DISPATCH}test_the_intent_is_committed_before_the_provider_hears_of_it",),
        seen_as="(AssertionError|assert |KeyError|ValueError: not enough values to unpack)",
    ),
    Mutant(
        "fails-what-may-have-been-accepted",
        "a hold is not released for want of an answer",
        (
            Edit(
                "lifecycle/dispatch.py",
                "        return News(task.id, attempt.number, setback=Setback.NO_ANSWER, "
                "excerpt=error.excerpt or cause)\n",
                "        failure = Failure(FailureClass.INVALID_REQUEST, 'invalid_request')\n"
                "        update = ProviderUpdate(UpdateStatus.FAILED, Origin.ANSWER, failure=failure)\n"
                "        return News(task.id, attempt.number, update=update)\n",
            ),
        ),
        (f"{UNCERTAIN}test_without_a_callback_a_person_decides_at_the_deadline_and_the_hold_stays",),
    ),
    Mutant(
        "sends-again-after-a-time-out",
        "what may have been accepted is never sent again blindly",
        (
            Edit(
                "lifecycle/dispatch.py",
                "setback=Setback.NO_ANSWER, excerpt=error.excerpt or cause)",
                "setback=Setback.TURNED_AWAY, excerpt=error.excerpt or cause)",
            ),
        ),
        (f"{UNCERTAIN}test_a_provider_that_accepts_and_hangs_is_uncertain_after_its_time_out",),
    ),
    Mutant(
        "sends-again-after-a-gateway",
        "a gateway's error proves nothing",
        (
            Edit(
                "providers/failures.py",
                "        if judged is None or judged.outcome in",
                "        if answer.status in (502, 504):\n"
                '            return self._unavailable("rate_limited", answer, *secrets)\n'
                "        if judged is None or judged.outcome in",
            ),
        ),
        ("tests/providers/test_submit.py::test_an_answer_that_proves_nothing_leaves_the_submit_uncertain",),
    ),
    Mutant(
        "sends-again-after-a-death",
        "a worker that died in a submit leaves it uncertain",
        (
            Edit(
                "lifecycle/check.py",
                'setback=Setback.NO_ANSWER, excerpt="no answer was recorded"',
                'setback=Setback.TURNED_AWAY, excerpt="no answer was recorded"',
            ),
        ),
        (f"{UNCERTAIN}test_a_worker_that_died_while_submitting_leaves_it_uncertain_and_never_resent",),
    ),
    Mutant(
        "one-look-proves-absence",
        "an attempt is absent only after the provider's delay",
        (Edit("lifecycle/uncertain.py", "ABSENT_LOOKS = 2\n", "ABSENT_LOOKS = 1\n"),),
        (f"{UNCERTAIN}test_only_a_second_look_up_that_finds_nothing_allows_another_attempt",),
    ),
    Mutant(
        "another-reference-at-a-retry",
        "a send again goes out under the same reference",
        (
            Edit(
                "db/sql/tasks.sql",
                "attempt = CASE WHEN is_same_attempt THEN tasks.attempt ELSE tasks.attempt + 1 END,",
                "attempt = tasks.attempt + 1,",
            ),
        ),
        (f"{DISPATCH}test_a_retry_goes_out_under_the_same_reference",),
        seen_as="(AssertionError|assert |asyncpg.exceptions)",
    ),
    Mutant(
        "sends-without-a-lease",
        "a claim that has grown old is not sent",
        (
            Edit(
                "lifecycle/dispatch.py",
                "        elif time.monotonic() - claim.claimed_at > SEND_WITHIN_S:",
                "        elif False:",
            ),
        ),
        (f"{DISPATCH}test_a_claim_that_has_grown_old_is_not_sent",),
    ),
    Mutant(
        "lease-shorter-than-the-call",
        "nobody takes over a call before its time-out",
        (Edit("lifecycle/dispatch.py", "ANSWER_MARGIN_S = 30.0", "ANSWER_MARGIN_S = -15.0"),),
        (f"{DISPATCH}test_a_claim_and_its_answer_leave_a_lease_each",),
    ),
    Mutant(
        "no-limit-of-calls",
        "no more calls are in flight than a provider allows",
        (
            Edit(
                "lifecycle/dispatch.py",
                "calls_free = min(room, free.calls)",
                "calls_free = room",
            ),
        ),
        (f"{DISPATCH}test_no_more_calls_are_in_flight_than_the_provider_allows",),
    ),
    Mutant(
        "queue-is-all-there-is",
        "rows are found again without any job",
        (
            Edit(
                "lifecycle/sweep.py",
                "due = await providers_with_due_tasks(connection, providers, overdue_s=OVERDUE_S)",
                "due = []",
            ),
        ),
        ("tests/jobs/test_worker.py::test_a_wiped_queue_costs_only_the_time_of_a_sweep",),
    ),
    Mutant(
        "retries-without-a-cap",
        "the back-off ends at a minute",
        (
            Edit(
                "domain/schedule.py",
                "_spread(min(2.0 ** min(max(tries - 1, 0), 16), 60.0), uniform)",
                "_spread(2.0 ** min(max(tries - 1, 0), 16), uniform)",
            ),
        ),
        ("tests/domain/test_schedule.py::test_the_back_off_doubles_up_to_a_minute",),
    ),
    Mutant(
        "retries-in-step",
        "waits are spread",
        (Edit("domain/schedule.py", "uniform(1.0 - SPREAD, 1.0 + SPREAD)", "uniform(1.0, 1.0)"),),
        ("tests/domain/test_schedule.py::test_the_back_off_doubles_up_to_a_minute",),
    ),
    Mutant(
        "bytes-that-no-disk-has",
        "put returns when the disk knows bytes and name",
        (
            Edit(
                "assets/folders.py",
                "            rest = rest[os.write(file, rest) :]\n        os.fsync(file)\n",
                "            rest = rest[os.write(file, rest) :]\n",
            ),
        ),
        (f"{LOCAL}test_the_file_is_synced_before_it_gets_its_name_and_the_name_before_put_returns",),
    ),
    Mutant(
        "name-that-no-disk-has",
        "put returns when the disk knows bytes and name",
        (Edit("assets/local.py", "            await self._sync.sync(path.parent)\n", ""),),
        (f"{LOCAL}test_the_file_is_synced_before_it_gets_its_name_and_the_name_before_put_returns",),
    ),
    Mutant(
        "row-before-its-bytes",
        "ready means durable bytes",
        (
            Edit(
                ARCHIVE,
                "        await self._context.store.put(key, copy.data)\n",
                "        put = self._context.store.put(key, copy.data)\n"
                "        asyncio.get_running_loop().call_later(60, asyncio.ensure_future, put)\n",
            ),
        ),
        ("tests/lifecycle/test_archive.py::test_a_result_is_kept_byte_for_byte_before_the_task_is_ready",),
        seen_as="safelight.errors.AssetError: there is no such asset",
    ),
    Mutant(
        "ready-without-a-look-at-the-bytes",
        "what is delivered was decoded",
        (
            Edit(
                "assets/checking.py",
                '        with reading("truncated"):\n            _decode_frames(image, limits)\n',
                '        with reading("truncated"):\n',
            ),
            Edit("assets/checking.py", "    _check_ending(kind, data)\n    with reading", "    with reading"),
        ),
        ("tests/assets/test_pictures.py::test_a_picture_cut_anywhere_is_refused_and_may_be_fetched_again",),
    ),
    Mutant(
        "failing-storage-loses-a-result",
        "a result is not given up because our own storage fails",
        (
            Edit(
                ARCHIVE,
                "        if in_storage is not None:\n            await self._wait_for_storage(task, in_storage)\n"
                "            return\n",
                "",
            ),
            Edit(
                ARCHIVE,
                "        except AssetError as error:\n            await self._wait_for_storage(task, error)\n"
                "            return\n",
                "        except AssetError:\n            items = []\n",
            ),
        ),
        ("tests/lifecycle/test_archive.py::test_a_failing_storage_stops_dispatch_everywhere_and_recovers",),
    ),
    Mutant(
        "found-attempts-are-free",
        "an attempt that a restored service finds upstream is one of those a task may have",
        (
            Edit(
                "db/tasks.py",
                "return self.sends > self.throttled or self.accepted_at is not None",
                "return self.sends > self.throttled",
            ),
        ),
        ("tests/lifecycle/test_restored.py::test_attempts_that_are_found_count_as_what_they_were",),
    ),
    Mutant(
        "not-found-here-means-nowhere",
        "where a restored task may have gone elsewhere, not finding it here proves nothing",
        (
            Edit(
                "lifecycle/uncertain.py",
                "if not attempt.has_had_its_chance and self._context.routing.may_have_gone_elsewhere(task):",
                "if False:",
            ),
        ),
        (
            "tests/lifecycle/test_restored.py::test_where_it_may_have_gone_elsewhere_only_finding_it_proves_anything",
        ),
    ),
)
