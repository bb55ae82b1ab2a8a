"""Put into a page what a script has measured, and what its examples print.

python -m benchmarks.filling docs/testing.md        # run its examples anew
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

EXAMPLE = re.compile(r"```python\n(.*?)```(\n\n```text\n.*?```)?", re.DOTALL)


def fill(page: Path, marker: str, text: str) -> None:
    """Replace what stands between ``<!-- marker -->`` and ``<!-- /marker -->``.

    Raises:
        ValueError: the page does not have the two markers.
    """
    begin, end = f"<!-- {marker} -->\n", f"<!-- /{marker} -->"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page.name} must have {begin.strip()} and {end}")
    page.write_text(before + begin + text.strip() + "\n" + end + after)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_outputs(text: str) -> str:
    """Run the Python blocks of a page, one after the other in one namespace.

    Returns the page with what each prints in the ``text`` block that follows it.
    """
    # Classes and functions of a block look for their names in the module they are of.
    namespace: dict[str, object] = {"__name__": "page"}

    def run(match: re.Match[str]) -> str:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(match[1], namespace)
        shown = f"\n\n```text\n{printed.getvalue()}```" if match[2] or printed.getvalue() else ""
        return f"```python\n{match[1]}```{shown}"

    return EXAMPLE.sub(run, text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(with_outputs(page.read_text()))
