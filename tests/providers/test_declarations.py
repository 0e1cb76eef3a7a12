"""What a declaration may say, and how it is told that it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from safelight.domain.catalog import Catalog
from safelight.domain.provider import AfterUncertain, Provider, Trust
from safelight.errors import ConfigurationError
from safelight.providers import (
    DeclaredProvider,
    capabilities_of,
    load_declaration,
    models_of,
    packaged_declaration,
    packaged_names,
)

TEXT = """
name = "acme"
base_url = "${acme_url:https://acme.example}"

[submit]
path = "/v1/jobs"
after_uncertain = "none"
body = { prompt = "{prompt}" }

[answer]
provider_ref = "id"
status = "status"
statuses = { ok = "succeeded", bad = "failed" }

[poll]
path = "/v1/jobs/{provider_ref}"

[[models]]
name = "acme-1"
price = 3
"""

_KEEPS_THE_PROTOCOL: type[Provider] = DeclaredProvider


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as raised:
        load_declaration(text)
    return str(raised.value).splitlines()


LAB = ("lab-callback", "lab-poll", "lab-sync")


@pytest.mark.parametrize("name", packaged_names())
def test_every_packaged_declaration_says_what_it_must(name: str) -> None:
    declaration = packaged_declaration(name)
    assert declaration.name == name
    assert models_of(declaration)
    if not name.startswith("lab-"):
        assert declaration.title
        assert Path(f"docs/providers/{name}.md").exists()


def changed(old: str, new: str) -> str:
    assert old in TEXT
    return TEXT.replace(old, new, 1)


def test_the_lab_comes_in_three_shapes() -> None:
    assert [name for name in packaged_names() if name.startswith("lab-")] == list(LAB)
    sync, poll, callback = (
        capabilities_of(packaged_declaration(f"lab-{kind}")) for kind in ("sync", "poll", "callback")
    )
    assert (sync.is_synchronous, sync.can_poll, sync.calls_back) == (True, False, False)
    assert (sync.after_uncertain, sync.submit_timeout_s) == (AfterUncertain.SAME_KEY, 60.0)
    assert (poll.can_poll, poll.can_cancel, poll.can_list, poll.calls_back) == (True, True, True, False)
    assert (poll.after_uncertain, poll.visibility_delay_s) == (AfterUncertain.LOOK_UP, 1.0)
    assert (callback.calls_back, callback.trust, callback.after_uncertain) == (
        True,
        Trust.BODY,
        AfterUncertain.NONE,
    )
    assert {(one.max_calls, one.max_active, one.result_lifetime_s) for one in (sync, poll, callback)} == {
        (64, 2000, 3600.0)
    }


def test_the_labs_models_fill_a_catalog() -> None:
    catalog = Catalog(model for name in LAB for model in models_of(packaged_declaration(name)))
    assert set(catalog.models) == {"lab-sync", "lab-poll", "lab-callback"}
    assert catalog.default is not None
    assert catalog.default.name == "lab-callback"
    model = catalog.models["lab-poll"]
    assert (model.provider, model.upstream_model, model.price) == ("lab-poll", "lab-poll", 1)
    assert (model.max_n, model.max_images, model.operations) == (10, 4, ("generate", "edit"))
    assert (model.default_p95_s, model.p95_floor_s, model.p95_cap_s, model.deadline_s) == (4, 1, 120, 300)


def test_a_declaration_is_read_from_a_file_with_values(tmp_path: Path) -> None:
    path = tmp_path / "acme.toml"
    path.write_text(TEXT, encoding="utf-8")
    assert load_declaration(path).base_url == "https://acme.example"
    assert (
        load_declaration(path, values={"acme_url": "https://eu.acme.example"}).base_url
        == "https://eu.acme.example"
    )
    path.write_text(changed(":https://acme.example", ""), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"^acme\.toml: base_url needs a value for \$\{acme_url\}"):
        load_declaration(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^gone\.toml: .*No such file"):
        load_declaration(tmp_path / "gone.toml")
    assert "at line 1" in faults("name = \nbase_url = 1")[0]
    with pytest.raises(ConfigurationError, match=r"'lab'; there are .*lab-callback, lab-poll, lab-sync"):
        packaged_declaration("lab")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('path = "/v1/jobs"', 'pth = "/v1/jobs"', "submit.pth is not a known key; did you mean 'path'?"),
        ('path = "/v1/jobs"\n', "", "submit.path is missing; add it"),
        ('provider_ref = "id"', 'provider_ref = "id["', "answer.provider_ref is not a jmespath expression"),
        ('bad = "failed"', 'bad = "broken"', "answer.statuses.bad: input should be 'queued', "),
        ('bad = "failed"', 'OK = "failed"', "answer.statuses has a word twice"),
        (
            "price = 3",
            "price = -3",
            "models[0].price: input should be greater than or equal to 0; correct it",
        ),
        ("price = 3", "price = 3\nprize = 3", "models[0].prize is not a known key; did you mean 'price'?"),
        ("{prompt}", "{promt}", "submit.body.prompt has no value for {promt}; use one of "),
        ("{prompt}", "{prompt", "submit.body.prompt has a stray '{'"),
        ("{provider_ref}", "{prompt}", "poll.path has no value for {prompt}; use one of "),
        (
            'after_uncertain = "none"',
            'after_uncertain = "look_up"',
            "submit.after_uncertain is 'look_up'; add a",
        ),
        (
            'after_uncertain = "none"',
            'after_uncertain = "same_key"',
            "submit.after_uncertain is 'same_key'; put ",
        ),
        ('status = "status"', "", "poll.answer.status is absent; say where"),
        ('provider_ref = "id"', "", "submit.answer.provider_ref is absent; say where"),
        (
            '[poll]\npath = "/v1/jobs/{provider_ref}"',
            "",
            "poll is absent; add a [poll] or a [callback] table",
        ),
        ("price = 3", 'price = 3\noperations = ["edit"]', "models: 'acme-1' edits, but max_images is 0"),
        (
            "price = 3",
            'price = 3\n[auth]\nkind = "header"\nheadr = "x"',
            "auth[0].headr is not a known key; did you mean 'header'?",
        ),
        ("price = 3", 'price = 3\n[auth]\nkind = "magic"', "auth[0]: input tag 'magic'"),
        (
            "price = 3",
            'price = 3\n[[models]]\nname = "acme-1"\nprice = 4',
            "models has 'acme-1' twice; give each",
        ),
        (
            "price = 3",
            'price = 3\n[callback]\ntrust = "body"\nsignature = { kind = "none" }',
            "callback.trust is 'body', but 'none' does not prove the body; write 'hint'",
        ),
        (
            "price = 3",
            'price = 3\n[callback]\ntrust = "hint"\nsignature.kind = "static_token"\nsignature.secrets = []',
            "callback.signature.secrets: tuple should have at least 1 item",
        ),
        (
            "price = 3",
            'price = 3\n[[errors.rules]]\nstatus = [500]\noutcome = "rate_limited"',
            "errors.rules[0] a 5xx alone proves nothing",
        ),
        (
            "price = 3",
            'price = 3\n[[errors.rules]]\nstatus = ["5xx"]\noutcome = "ambiguous"',
            "errors.rules[0].status[0] is not an HTTP status",
        ),
        (
            "price = 3",
            'price = 3\n[[errors.rules]]\nregex = "("\noutcome = "funds"',
            "errors.rules[0].regex is not a regular expression",
        ),
        (
            "price = 3",
            'price = 3\n[[failures]]\nequals = ["x"]\nclass = "environment"\ncode = "x"',
            "failures[0].class: input should be ",
        ),
    ],
)
def test_a_wrong_declaration_is_told_the_place_and_the_mend(old: str, new: str, fault: str) -> None:
    assert [line for line in faults(changed(old, new)) if line.startswith(f"declaration: {fault}")] != []


def test_all_faults_are_told_at_once() -> None:
    text = changed("price = 3", "prize = 3").replace('path = "/v1/jobs"\n', "")
    assert [line.split(";")[0] for line in faults(text)] == [
        "declaration: submit.path is missing",
        "declaration: models[0].price is missing",
        "declaration: models[0].prize is not a known key",
    ]
