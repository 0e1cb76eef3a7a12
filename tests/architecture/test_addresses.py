"""The repository names no address to download from: packages come through whatever index its user has set."""

from __future__ import annotations

import json
import re

import pytest

from tests.architecture.source import ROOT, read, shown, text_files

# Written in halves, so that this file does not name them either.
REGISTRIES = [
    "pypi" + ".org",
    "python" + "hosted",
    "npm" + "js",
    "yarn" + "pkg",
    "astral" + ".sh",
    "deb." + "debian",
    "debian" + ".org/debian",
    "archive.ubuntu" + ".com",
    "crates" + ".io",
    "conda" + ".anaconda",
    "ghcr" + ".io",
]
PATTERN = re.compile("|".join(re.escape(host) for host in REGISTRIES), re.IGNORECASE)
FOREIGN_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock")


def test_no_file_names_a_registry() -> None:
    named = {shown(path): PATTERN.findall(read(path)) for path in text_files()}
    assert {place: hosts for place, hosts in named.items() if hosts} == {}


@pytest.mark.parametrize("host", REGISTRIES)
def test_a_registry_is_seen(host: str) -> None:
    assert PATTERN.search(f"https://{host}/simple")


def test_the_lock_holds_names_and_hashes_and_no_address() -> None:
    lines = read(ROOT / "requirements.lock").splitlines()
    assert [
        line
        for line in lines
        if "://" in line or "--index" in line or " @ " in line or "--find-links" in line
    ] == []


def test_every_package_of_the_lock_has_a_hash() -> None:
    packages = re.findall(
        r"^[a-z0-9][^\n]*==[^\n]*\n[ ]+(\S+)", read(ROOT / "requirements.lock"), re.MULTILINE
    )
    assert len(packages) > 20
    assert {hash_[:14] for hash_ in packages} == {"--hash=sha256:"}


def test_there_is_one_lock() -> None:
    assert [name for name in FOREIGN_LOCKS if (ROOT / name).exists()] == []


def test_the_lock_of_the_web_pages_holds_hashes_and_no_address() -> None:
    packages = json.loads(read(ROOT / "web" / "package-lock.json"))["packages"]
    taken = {name: package for name, package in packages.items() if name}
    assert len(taken) > 20
    assert [name for name, package in taken.items() if "resolved" in package] == []
    assert [name for name, package in taken.items() if not package["integrity"].startswith("sha512-")] == []
