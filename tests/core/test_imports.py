"""What may import what, and how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import resilience_mw

PACKAGE = Path(resilience_mw.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
CORE = sorted((PACKAGE / "core").rglob("*.py"))

PURE = {
    "__future__",
    "bisect",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "typing",
}
"""What the core may take from the standard library: nothing that waits, reads or writes."""

OPTIONAL = {
    "click",
    "django",
    "fastapi",
    "flask",
    "gevent",
    "granian",
    "gunicorn",
    "h11",
    "httptools",
    "opentelemetry",
    "prometheus_client",
    "redis",
    "uvicorn",
    "uvloop",
    "waitress",
    "yaml",
}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield level and name of each import statement: ``(0, "asyncio")``, ``(2, "types")``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            assert name not in {"__import__", "import_module"}, path


def names(paths: list[Path]) -> list[str]:
    """Return them as they stand in the package."""
    return [str(path.relative_to(PACKAGE)) for path in paths]


@pytest.mark.parametrize("path", CORE, ids=names(CORE))
def test_the_core_does_no_io(path: Path):
    """No event loop, thread, clock, socket, logger or framework: time comes in as a number."""
    depth = len(path.relative_to(PACKAGE / "core").parts)
    for level, name in imports(path):
        if level == 0:
            assert name.partition(".")[0] in PURE, name
        elif level > depth:
            assert level == depth + 1, name
            assert name in LAYERS["core"], name


def test_the_core_has_files():
    """The rule above is about something."""
    assert len(CORE) > 10


@pytest.mark.parametrize("path", FILES, ids=names(FILES))
def test_a_file_has_one_idea(path: Path):
    """And fits in 300 lines."""
    assert len(path.read_text().splitlines()) <= 300


LAYERS = {
    "core": {"exceptions", "keywords"},
    "config": {"core", "exceptions", "keywords"},
    "signals": {"core", "config", "types", "exceptions"},
}


@pytest.mark.parametrize("layer", LAYERS)
def test_dependencies_point_one_way(layer: str):
    """The lower layers know nothing of the upper ones."""
    for path in sorted((PACKAGE / layer).rglob("*.py")):
        depth = len(path.relative_to(PACKAGE).parts)
        for level, name in imports(path):
            if level == depth:
                first = name.partition(".")[0]
            elif level == 0 and name.startswith("resilience_mw."):
                first = name.split(".")[1]
            else:
                continue
            assert first in LAYERS[layer] | {layer}, f"{path.name} imports {first}"


@pytest.mark.parametrize("module", ["resilience_mw", "resilience_mw.asgi", "resilience_mw.wsgi"])
def test_no_optional_package_is_loaded_unasked(module: str):
    """Whoever has only the required packages can import it, and nobody pays for the others."""
    code = f"import {module}, sys; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert OPTIONAL & set(ran.stdout.split()) == set()


def test_importing_the_package_loads_no_driver():
    """A Flask app pays for no event loop, and a FastAPI app for no Werkzeug."""
    code = "import resilience_mw, sys; print(*sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    loaded = set(ran.stdout.split())
    for module in ("resilience_mw.asgi", "resilience_mw.wsgi", "starlette", "werkzeug", "psutil"):
        assert module not in loaded
