"""The list of options for people and machines: plain table, Markdown, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from resilience_mw.config.config import Config
from resilience_mw.config.option import Option
from resilience_mw.config.section import Section, options_of


@dataclass(frozen=True)
class Row:
    """One option as people see it; an empty text means there is none."""

    name: str
    type: str
    default: str
    unit: str
    help: str
    env: str
    flag: str
    node: str


def options(sections: Iterable[type[Section]] | None = None) -> list[Row]:
    """Return one row per option, in the order of declaration."""
    chosen = Config.sections().values() if sections is None else sections
    return [_row(option) for section in chosen for option in options_of(section).values()]


def table(rows: Iterable[Row]) -> str:
    """Return aligned columns for a terminal."""
    lines = [("option", "type", "default", "meaning")]
    lines += [(row.name, _type(row), row.default, row.help) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def markdown(rows: Iterable[Row]) -> str:
    """Return a Markdown table with every spelling."""
    lines = [
        ("option", "type", "default", "meaning", "environment", "flag", "Node name"),
        ("---",) * 7,
    ]
    lines += [
        (
            _code(row.name),
            _type(row),
            _code(row.default),
            row.help,
            _code(row.env),
            _code(row.flag),
            _code(row.node),
        )
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(map(_escape, cells))} |" for cells in lines)


def as_json(rows: Iterable[Row]) -> str:
    """Return a JSON array of objects with the attributes of `Row`."""
    return json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False)


def default_text(option: Option) -> str:
    """Return the default as people write it in Python."""
    if option.derived:
        return option.derived
    if isinstance(option.default, str):
        return json.dumps(option.default)
    if isinstance(option.default, float):
        return option.rule.text(option.default)
    return repr(option.default)


def _row(option: Option) -> Row:
    spelled = not option.python_only
    return Row(
        name=option.dotted,
        type=option.rule.kind,
        default=default_text(option),
        unit=option.unit,
        help=option.help,
        env=option.env if spelled else "",
        flag=option.flag if spelled else "",
        node=option.node,
    )


def _type(row: Row) -> str:
    return f"{row.type} ({row.unit})" if row.unit else row.type


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _escape(cell: str) -> str:
    return cell.replace("|", r"\|")
