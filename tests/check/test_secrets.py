"""What `resilience-mw check` shows of health checks: where they ask, and no password."""

from __future__ import annotations

import pytest

from resilience_mw.cli import main

from .conftest import APPS


def test_json_names_addresses_without_secrets(check):
    """Of texts, and of checks that have been made of them."""
    _, report = check("asking")
    (value,) = [o["value"] for o in report["options"] if o["name"] == "health.checks"]
    assert value == {
        "next": "UpstreamCheck('http://127.0.0.1:7001/status')",
        "cache": "RedisCheck('redis://***@cache/0')",
        "text": "redis://***@cache/1?password=***",
        "disk": "DiskCheck('/')",
        "port": "TcpCheck('127.0.0.1:7')",
        "own": "Check(check)",
    }
    assert "hunter2" not in str(report)


@pytest.mark.parametrize("form", ["text", "json"])
def test_neither_do_findings(form, capsys, monkeypatch):
    """What is wrong with a check is told without its password."""
    text = "a=redis://:hunter2@cache/x?db=zz,b=http://u:hunter2@h/?api_key=hunter2"
    monkeypatch.setenv("RESILIENCE_HEALTH_CHECKS", text)
    main(["check", f"{APPS}:fastapi", "--format", form])
    out, err = capsys.readouterr()
    assert "***@cache" in out + err
    assert "hunter2" not in out + err


def test_the_table_has_a_line_for_each_check(capsys):
    """However many there are."""
    main(["check", f"{APPS}:asking"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["health.checks", "cache", "RedisCheck('redis://***@cache/0')", "code"] in lines
    assert ["health.checks", "disk", "DiskCheck('/')", "code"] in lines
