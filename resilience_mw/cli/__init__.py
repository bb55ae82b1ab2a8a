"""The command line, `resilience-mw`; needs the extra `cli`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; without click, say what to install."""
    try:
        from resilience_mw.cli.program import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("resilience-mw needs click: pip install 'resilience-mw[cli]'", file=sys.stderr)
        return 1
    return run(argv)
