from __future__ import annotations

import configparser
import tomllib
from importlib.metadata import entry_points, metadata

from benchmarks.process import ROOT

SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")


def test_every_folder_with_code_is_a_package():
    """`find:` skips a folder without `__init__.py`, and the wheel would lack it silently."""
    folders = {file.parent for file in (ROOT / "resilience_mw").rglob("*.py")}
    assert len(folders) > 1
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_version_is_written_once():
    """The installed metadata has the version of setup.cfg."""
    assert metadata("resilience-mw")["Version"] == SETUP["metadata"]["version"]


def test_types_are_shipped():
    """Type checkers look for the marker."""
    assert "py.typed" in SETUP["options.package_data"]["resilience_mw"]
    assert (ROOT / "resilience_mw" / "py.typed").exists()


def test_the_command_is_there():
    """`resilience-mw` is installed, and leads to something that can be called."""
    (script,) = entry_points(group="console_scripts", name="resilience-mw")
    assert callable(script.load())


def test_extras_that_the_docs_promise():
    """Each optional part of the package can be installed by its name."""
    promised = {"uvicorn", "gunicorn", "django", "flask", "fastapi", "cli", "redis", "proxy", "dev"}
    assert promised <= set(metadata("resilience-mw").get_all("Provides-Extra") or [])


def test_metadata_stays_in_one_file():
    """A `[project]` table would make setuptools drop what setup.cfg says."""
    assert "project" not in tomllib.loads((ROOT / "pyproject.toml").read_text())
