"""Mutants of what comes in: callbacks, news, other accounts, addresses and pictures."""

from __future__ import annotations

from tests.proof.mutants_form import Edit, Mutant

RECEIVE = "tests/lifecycle/test_receive.py::"
SIGNATURES = "tests/providers/test_signatures.py::"
CALLBACKS = "tests/providers/test_callbacks.py::"
ADDRESS = "tests/lifecycle/test_receive_address.py::"
ADDRESSES = "tests/assets/test_addresses.py::"
VERIFIERS = "providers/verifiers.py"

OF_DOORS: tuple[Mutant, ...] = (
    Mutant(
        "writes-without-the-fence",
        "only news of the current attempt counts",
        (Edit("domain/news.py", "    if attempt != standing.attempt:\n", "    if False:\n"),),
        (f"{RECEIVE}test_a_callback_of_an_earlier_attempt_is_stale",),
    ),
    Mutant(
        "late-success-revives",
        "a late success changes neither money nor state",
        (
            Edit(
                "domain/news.py",
                "    if standing.state not in _OPEN:\n        return _decide_late(standing, update)\n",
                "",
            ),
        ),
        (f"{RECEIVE}test_a_success_after_the_release_is_an_orphan_and_moves_no_money",),
        seen_as="safelight.errors.LedgerError: no arrow",
    ),
    Mutant(
        "hint-is-believed",
        "what is not proved over its body only asks for a look",
        (
            Edit(
                "lifecycle/dispatch.py",
                "        if provider.capabilities.trust is Trust.HINT:\n            return hint\n",
                "",
            ),
        ),
        (f"{RECEIVE}test_an_unsigned_kind_of_notice_only_brings_the_look_forward_and_not_too_often",),
    ),
    Mutant(
        "applied-twice",
        "what had its effect makes the same a duplicate",
        (
            Edit(
                "db/sql/inbox.sql",
                "WHERE callbacks.verdict = 'applied';",
                "WHERE callbacks.verdict = 'never';",
            ),
        ),
        (f"{RECEIVE}test_a_callback_that_had_its_effect_is_a_duplicate_when_it_comes_again",),
    ),
    Mutant(
        "unusable-poisons",
        "only what had its effect makes the next a duplicate",
        (
            Edit(
                "db/sql/inbox.sql",
                "WHERE callbacks.verdict = 'applied';",
                "WHERE callbacks.verdict <> 'never';",
            ),
        ),
        (f"{RECEIVE}test_a_success_without_pictures_is_unusable_and_poisons_no_later_one",),
    ),
    Mutant(
        "seen-before-it-is-proved",
        "a forgery cannot make the genuine one a duplicate",
        (
            Edit(
                "lifecycle/receive.py",
                "            await provider.verify_callback(headers, raw)\n",
                "            seen = self.__dict__.setdefault('seen', set())\n"
                "            if raw in seen:\n"
                "                return\n"
                "            seen.add(raw)\n"
                "            await provider.verify_callback(headers, raw)\n",
            ),
        ),
        (f"{RECEIVE}test_nothing_that_is_not_authentic_changes_a_single_row",),
        seen_as="Failed: DID NOT RAISE",
    ),
    Mutant(
        "seen-before-it-is-done",
        "a callback counts as seen with its effect, not before",
        (
            Edit(
                "lifecycle/receive.py",
                '        point("after_verify")\n',
                '        point("after_verify")\n'
                "        seen = self.__dict__.setdefault('seen', set())\n"
                "        if raw in seen:\n"
                "            return\n"
                "        seen.add(raw)\n",
            ),
        ),
        ("tests/field/test_field_money.py::test_D12_a_release_that_fails_is_tried_until_it_is_done",),
    ),
    Mutant(
        "unknown-is-sent-away",
        "a genuine callback that came too early is kept",
        (
            Edit(
                "lifecycle/receive.py",
                "                return await self._keep_unmatched(provider.name, update, body)\n",
                '                raise CallbackRejected("unknown", status=404)\n',
            ),
        ),
        (f"{RECEIVE}test_a_callback_for_an_unknown_id_is_kept_and_matched_when_the_answer_arrives",),
        seen_as="(AssertionError|assert |safelight.errors.CallbackRejected)",
    ),
    Mutant(
        "signature-over-other-bytes",
        "the signature covers the raw bytes",
        (
            Edit(VERIFIERS, "import binascii\n", "import binascii\nimport json\n"),
            Edit(
                VERIFIERS,
                '            case "body":\n                return raw\n',
                '            case "body":\n                return json.dumps(json.loads(raw)).encode()\n',
            ),
        ),
        (f"{CALLBACKS}test_the_signature_covers_the_raw_bytes",),
        seen_as="(AssertionError|safelight.errors.CallbackRejected: signature_wrong|Failed: DID NOT RAISE)",
    ),
    Mutant(
        "no-look-at-the-time",
        "a captured callback cannot be played again later",
        (
            Edit(
                VERIFIERS,
                "if abs(self._clock() - int(value)) > self._signature.tolerance_s:",
                "if False:",
            ),
        ),
        (f"{SIGNATURES}test_a_callback_out_of_its_window_is_refused_though_correctly_signed",),
    ),
    Mutant(
        "first-of-two-signatures",
        "a header that stands twice proves nothing",
        (Edit(VERIFIERS, "    if len(values) > 1:\n", "    if False:\n"),),
        (f"{CALLBACKS}test_a_callback_without_proof_is_rejected",),
    ),
    Mutant(
        "empty-secret-signs",
        "an empty secret is refused at the start",
        (Edit(VERIFIERS, "        if not credentials[name].strip():\n", "        if False:\n"),),
        (f"{CALLBACKS}test_an_empty_secret_is_a_configuration_error",),
    ),
    Mutant(
        "any-token-opens",
        "a token names an attempt only with our own seal",
        (Edit("domain/tokens.py", "if not hmac.compare_digest(mac, self._mac(name)):", "if not mac:"),),
        ("tests/domain/test_tokens.py::test_every_changed_character_makes_a_token_nobody_issued",),
    ),
    Mutant(
        "another-provider-s-word",
        "a provider speaks only of what was sent to it",
        (
            Edit(
                "lifecycle/advance.py",
                "        if news.callback and news.callback.provider != attempt.provider:\n",
                "        if False:\n",
            ),
        ),
        (f"{ADDRESS}test_a_token_of_another_provider_s_task_changes_nothing",),
    ),
    Mutant(
        "another-task-s-picture",
        "a callback about one task changes nothing at another",
        (
            Edit(
                "lifecycle/advance.py",
                "        if news.callback and self._is_about_another(news, attempt):\n",
                "        if False:\n",
            ),
        ),
        (f"{ADDRESS}test_a_genuine_callback_about_another_task_changes_nothing_at_this_one",),
    ),
    Mutant(
        "another-account-s-task",
        "no account sees another's rows",
        (
            Edit(
                "db/sql/views.sql",
                "WHERE tasks.account_id = :account_id AND tasks.id = ANY(:ids::uuid[])",
                "WHERE :account_id::uuid IS NOT NULL AND tasks.id = ANY(:ids::uuid[])",
            ),
        ),
        ("tests/api/test_tasks.py::test_what_is_another_accounts_looks_like_what_does_not_exist",),
    ),
    Mutant(
        "another-account-s-picture",
        "no account sees another's rows",
        (
            Edit(
                "db/sql/views.sql",
                "WHERE id = :id AND account_id = :account_id AND doomed_at IS NULL;\n\n-- name: ended_tasks",
                "WHERE id = :id AND :account_id::uuid IS NOT NULL AND doomed_at IS NULL;\n\n-- name: ended_tasks",
            ),
        ),
        ("tests/api/test_tasks.py::test_what_is_another_accounts_looks_like_what_does_not_exist",),
        seen_as="(AssertionError|assert |UnicodeDecodeError)",
    ),
    Mutant(
        "disguised-address",
        "a wrapped address is judged by what is inside",
        (
            Edit(
                "assets/addresses.py",
                "    if address.ipv4_mapped is not None:\n        return _classify_v4(address.ipv4_mapped)\n",
                "    if address.ipv4_mapped is not None:\n        return None\n",
            ),
        ),
        (f"{ADDRESSES}test_wrapping_a_denied_address_does_not_make_it_public",),
    ),
    Mutant(
        "redirect-is-followed-unseen",
        "a redirect is vetted like the first address",
        (
            Edit(
                "assets/fetch.py",
                "            target = follow(target, location, max_characters=self._limits.url_characters)\n"
                "            self._vet(target)\n",
                "            target = follow(target, location, max_characters=self._limits.url_characters)\n",
            ),
        ),
        ("tests/assets/test_hostile_urls.py::test_a_redirect_is_vetted_like_the_first_url",),
    ),
    Mutant(
        "long-sides-and-many-frames",
        "a picture that is too large is refused from its header",
        (
            Edit(
                "assets/checking.py",
                "    if max(width, height) > limits.max_side or frames > limits.max_frames:\n",
                "    if False:\n",
            ),
        ),
        ("tests/assets/test_pictures.py::test_a_bomb_is_refused_from_its_header",),
    ),
)
