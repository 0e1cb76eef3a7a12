"""The `safelight` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line; exit codes are 0, 1 for a failed task or a finding, 2 for wrong usage."""
    from safelight.cli.app import app

    app(prog_name="safelight")


if __name__ == "__main__":
    main()
