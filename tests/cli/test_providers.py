"""`safelight providers`: the list, one provider, a declaration of one's own, and its first picture."""

from __future__ import annotations

import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from safelight.providers import packaged_names
from tests.cli.command import Command

PICTURE = b"\x89PNG"


@pytest.fixture
def command(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command with an empty data directory, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return Command(data_dir)


@pytest.fixture
def relay_url(command: Command) -> Iterator[str]:
    """The relay of a lab that runs as a process of its own."""
    knobs = '{"latency_s": [0, 0], "small_pictures": true}'
    with command.start("lab", "--port", "0", "--knobs", knobs) as lab:
        assert lab.stdout is not None
        yield f"{lab.stdout.readline().removeprefix('lab: ').strip()}/relay"
        lab.send_signal(signal.SIGINT)
        lab.communicate(timeout=300)


@pytest.fixture
def mine(command: Command) -> Path:
    """A declaration of one's own, as the template is."""
    assert command("providers", "new", "myrelay").code == 0
    return Path("myrelay.toml")


def changed(path: Path, old: str, new: str) -> Path:
    """The file with one text in place of another, which it must have."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def test_the_list_has_every_provider_and_what_it_can_do(command: Command) -> None:
    said = command("providers", "list")
    assert said.code == 0
    assert all(f"\n{name} " in f"\n{said.out}" for name in packaged_names())
    rows = {row["provider"]: row for row in command("providers", "list", "--json").json}
    assert sorted(rows) == list(packaged_names())
    assert rows["flux-art"]["after a lost answer"] == "same key"
    assert rows["relay"] == {
        "provider": "relay",
        "written as": "declaration",
        "answers": "by poll",
        "callbacks": "body",
        "after a lost answer": "callback or a person",
        "does": "generate, edit",
        "models": 1,
        "keys": 0,
    }


def test_the_list_says_which_providers_are_set_up_here(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    command.data_dir = tmp_path
    monkeypatch.setenv("SAFELIGHT_PROVIDER_FAL_API_KEY", "one")
    monkeypatch.setenv("SAFELIGHT_PROVIDER_FAL_API_KEY_2", "two")
    assert command("providers", "new", "myrelay").code == 0
    table = (
        '[providers.myrelay]\nfile = "myrelay.toml"\nbase_url = "https://relay.example"\napi_key = "three"\n'
    )
    Path("safelight.toml").write_text(table)
    keys = {row["provider"]: row["keys"] for row in command("providers", "list", "--json").json}
    assert {name: count for name, count in keys.items() if count} == {"fal": 2, "myrelay": 1}
    Path("safelight.toml").write_text("[providers.fall]\n")
    said = command("providers", "list")
    assert (said.code, said.out) == (2, "")
    assert "is 'fal' meant?" in said.err


def test_one_provider_says_how_it_is_enabled_and_what_it_makes(command: Command) -> None:
    said = command("providers", "show", "tencent")
    assert said.out.startswith("tencent: Tencent Hunyuan image\n")
    keys = "SAFELIGHT_PROVIDER_TENCENT_ACCESS_KEY, SAFELIGHT_PROVIDER_TENCENT_SECRET_KEY"
    assert f"  enabled by: {keys}\n" in said.out
    assert "  at most: 1 tasks at once\n" in said.out
    assert "  cancel: no\n" in said.out
    assert "hunyuan-image-edit" in said.out
    [first, _] = command("providers", "show", "tencent", "--json").json["models"]
    assert (first["model"], first["pictures"], first["price"]) == ("hunyuan-image", "up to 4", 8)


def test_a_provider_without_an_address_is_enabled_by_one(command: Command) -> None:
    shown = command("providers", "show", "relay", "--json").json
    assert shown["address"] == "set by you"
    assert shown["enabled by"] == ["SAFELIGHT_PROVIDER_RELAY_API_KEY", "SAFELIGHT_PROVIDER_RELAY_BASE_URL"]


def test_a_declaration_of_ones_own_is_enabled_in_the_file(command: Command, mine: Path) -> None:
    shown = command("providers", "show", str(mine), "--json").json
    assert shown["name"] == "myrelay"
    assert shown["enabled by"] == ["api_key in [providers.myrelay]", "base_url in [providers.myrelay]"]
    assert [model["model"] for model in shown["models"]] == ["myrelay-image"]


def test_new_says_what_to_do_next(command: Command, tmp_path: Path) -> None:
    said = command("providers", "new", "myrelay")
    assert (said.code, said.err) == (0, "")
    assert "safelight providers check myrelay.toml --dialect relay\n" in said.out
    assert "safelight providers try myrelay.toml --lab relay -o picture.png\n" in said.out
    assert f"Enable it:  in {command.data_dir / 'safelight.toml'}\n" in said.out
    table = "\n".join(line.strip() for line in said.out.splitlines() if line.startswith("    "))
    settings = tomllib.loads(table)["providers"]["myrelay"]
    assert settings["file"] == str(tmp_path / "myrelay.toml")
    assert set(settings) == {"file", "base_url", "api_key"}


def test_new_begins_with_any_provider(command: Command) -> None:
    said = command("providers", "new", "my-kling", "--like", "kling", "-o", "other.toml")
    assert (said.code, "base_url" in said.out) == (0, False)
    shown = command("providers", "show", "other.toml", "--json").json
    assert shown["name"] == "my-kling"
    assert [model["model"] for model in shown["models"]] == ["kling-v2-1", "kling-v3"]
    assert command("providers", "try", "other.toml", "--lab", "kling").code == 0


def test_new_overwrites_nothing(command: Command, mine: Path) -> None:
    mine.write_text("a day's work")
    said = command("providers", "new", "myrelay")
    assert (said.code, said.out) == (2, "")
    assert said.err == "safelight: myrelay.toml exists already; -o names another file\n"
    assert mine.read_text() == "a day's work"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["show", "nothing"], "no declaration is called 'nothing'; there are apimart, "),
        (["show", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["new", "My_Relay"], "'My_Relay' is no name for a provider"),
        (["new", "my", "--like", "nothing"], "no declaration is called 'nothing'"),
        (["new", "my", "-o", "/nowhere/my.toml"], "there is no folder /nowhere"),
        (["check", "relay", "--dialect", "nothing"], "the lab has no dialect 'nothing'; there are apimart, "),
        (["try", "relay", "--lab", "nothing"], "the lab has no dialect 'nothing'; there are apimart, "),
        (["try", "relay", "--lab", "relay", "--model", "m"], "relay has no model m; there are relay-image"),
        (["try", "relay", "--lab", "relay", "-o", "/nowhere/p.png"], "there is no folder /nowhere"),
        (["try", "relay"], "relay is not enabled here"),  # before it is asked whether money may be spent
        (["try", "relay", "--yes"], "relay is not enabled here: `safelight providers show relay` says how"),
    ],
)
def test_wrong_usage_is_one_line(command: Command, words: list[str], complaint: str) -> None:
    said = command("providers", *words)
    assert (said.code, said.out) == (2, "")
    assert complaint in said.err
    assert len(said.err.splitlines()) == 1


def test_check_names_the_place_that_is_wrong(command: Command, mine: Path) -> None:
    changed(mine, 'after_uncertain = "none"', 'after_uncertain = "perhaps"')
    said = command("providers", "check", str(mine), "--dialect", "relay")
    assert (said.code, said.out) == (2, "")
    assert "myrelay.toml: submit.after_uncertain" in said.err


def test_check_finds_no_fault_in_the_template(command: Command, mine: Path) -> None:
    said = command("providers", "check", str(mine), "--dialect", "relay")
    lines = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert lines[0] == "myrelay: the declaration is well formed"
    assert "  ok    accepted: myrelay-image generate" in lines
    assert lines[-1] == f"{len(lines) - 2} cases, 0 faults"


def test_check_tells_each_fault(command: Command) -> None:
    command("providers", "new", "mine", "--like", "automatic1111")
    changed(Path("mine.toml"), 'prompt = "{prompt}"', 'prompt = "something else"')
    said = command("providers", "check", "mine.toml", "--dialect", "automatic1111", "--json")
    faults = {verdict["case"]: verdict["fault"] for verdict in said.json if verdict["fault"]}
    assert said.code == 1
    assert any("the prompt arrives as 'something else'" in fault for fault in faults.values())
    assert len(faults) < len(said.json)


def test_without_a_dialect_of_its_name_the_calls_are_shown(command: Command, mine: Path) -> None:
    changed(mine, '{"code": 0', '{"code": 1')
    said = command("providers", "check", str(mine))
    assert said.code == 0
    assert "the lab does not play an upstream called myrelay; --dialect names another\n" in said.out
    assert "  POST https://upstream.example/v1/images/generations\n" in said.out
    assert '    "model": "gpt-image-2",\n' in said.out
    assert "  Authorization: Bearer <api_key>\n" in said.out
    assert "  GET https://upstream.example/v1/images/tasks/PROVIDER_REF\n" in said.out


def test_a_dry_run_shows_every_kind_of_call(command: Command) -> None:
    calls = command("providers", "check", "kling", "--dry-run", "--json").json
    assert {call["call"].split()[0] for call in calls} == {"submit", "poll", "look_up", "list"}
    listing = next(call for call in calls if call["call"] == "list")
    assert "pageNum=1&pageSize=" in listing["lines"][1]


@pytest.mark.parametrize("name", packaged_names())
def test_every_call_of_every_provider_can_be_shown(command: Command, name: str) -> None:
    calls = command("providers", "check", name, "--dry-run", "--json").json
    assert calls
    assert not any("cannot be written down" in line for call in calls for line in call["lines"])


def test_try_makes_a_picture_with_the_lab(command: Command, mine: Path) -> None:
    said = command("providers", "try", str(mine), "--lab", "relay", "-o", "x.png")
    lines = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert lines[0].startswith("submit: myrelay, myrelay-image, reference ")
    assert lines[-1].startswith("saved: x.png (")
    assert Path("x.png").read_bytes().startswith(PICTURE)


def test_try_asks_before_money_is_spent(
    command: Command, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFELIGHT_PROVIDER_MYRELAY_API_KEY", "k")
    monkeypatch.setenv("SAFELIGHT_PROVIDER_MYRELAY_BASE_URL", "http://127.0.0.1:9")
    said = command("providers", "try", str(mine), "-o", "x.png")
    assert (said.code, Path("x.png").exists()) == (1, False)
    assert "myrelay may charge for this. Go on?" in said.out


def test_try_reads_a_declaration_of_ones_own_and_the_environment(
    command: Command, mine: Path, relay_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFELIGHT_PROVIDER_MYRELAY_API_KEY", "relay-test-api-key")
    monkeypatch.setenv("SAFELIGHT_PROVIDER_MYRELAY_BASE_URL", relay_url)
    said = command("providers", "try", str(mine), "--yes", "-o", "x.png")
    assert (said.code, said.err) == (0, "")
    assert Path("x.png").read_bytes().startswith(PICTURE)


def test_try_reads_what_the_installation_has_set(command: Command, mine: Path, relay_url: str) -> None:
    settings = f'[providers.myrelay]\nfile = "{mine.resolve()}"\nbase_url = "{relay_url}"\n'
    (command.data_dir / "safelight.toml").write_text(f'{settings}api_key = "another"\n')
    said = command("providers", "try", str(mine), "--yes", "-o", "x.png")
    assert (said.code, Path("x.png").exists()) == (1, False)
    assert said.err.startswith("safelight: myrelay turned the call away (401): credentials")
    (command.data_dir / "safelight.toml").write_text(f'{settings}api_key = "relay-test-api-key"\n')
    assert command("providers", "try", str(mine), "--yes", "-o", "x.png").code == 0
    assert Path("x.png").read_bytes().startswith(PICTURE)


def test_try_says_how_it_ended_without_a_picture(command: Command, mine: Path) -> None:
    said = command("providers", "try", str(mine), "--lab", "relay", "--prompt", " ")
    assert (said.code, Path("picture.png").exists()) == (1, False)
    assert said.err.startswith("safelight: myrelay refused the submit (422)")
    assert "prompt" in said.err
