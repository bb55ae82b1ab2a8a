"""The deploy files say what they should, and their numbers agree with our defaults."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.process import ROOT, Server, free_port
from benchmarks.talk import get
from resilience_mw import Config
from resilience_mw.runner.contradictions import Surroundings, contradictions
from resilience_mw.runner.drain import MARGIN

DEPLOY = ROOT / "examples" / "deploy"

DEFAULTS = Config()
RUNNER = DEFAULTS.runner


def needed(environment: dict[str, str]) -> float:
    """The seconds that a stop takes with these variables."""
    runner = Config.from_env(environment).runner
    return runner.drain_delay + runner.shutdown_timeout + MARGIN


@pytest.fixture(scope="module")
def kubernetes() -> dict[str, Any]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


@pytest.fixture(scope="module")
def pod(kubernetes: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = kubernetes["Deployment"]["spec"]["template"]["spec"]
    return spec


def seconds(text: str) -> float:
    """Read `35s`, `500ms`, `1s;`."""
    number, unit = re.fullmatch(r"(\d+)(ms|s)", text.rstrip(";")).groups()  # type: ignore[union-attr]
    return int(number) / (1000 if unit == "ms" else 1)


def test_kubernetes_grants_the_whole_stop(pod):
    """And needs no sleep before it: the delay is the app's own."""
    (container,) = pod["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    assert pod["terminationGracePeriodSeconds"] >= needed(environment)
    assert "lifecycle" not in container
    assert needed(environment) == needed({})
    around = Surroundings(grace=pod["terminationGracePeriodSeconds"])
    assert contradictions(Config.from_env(environment), around) == []


def test_kubernetes_asks_the_three_probes(pod):
    """Readiness fails within the delay; liveness only after a long silence."""
    (container,) = pod["containers"]
    probes = {kind: container[f"{kind}Probe"] for kind in ("startup", "readiness", "liveness")}
    health = DEFAULTS.health
    assert {kind: probe["httpGet"]["path"] for kind, probe in probes.items()} == {
        "startup": health.startup_path,
        "readiness": health.ready_path,
        "liveness": health.live_path,
    }
    ports = {port["name"] for port in container["ports"]}
    assert {probe["httpGet"]["port"] for probe in probes.values()} <= ports
    ready = probes["readiness"]
    slowest = ready["periodSeconds"] * ready["failureThreshold"] + ready["timeoutSeconds"]
    assert slowest < RUNNER.drain_delay
    live = probes["liveness"]
    assert live["periodSeconds"] * live["failureThreshold"] >= 30


def test_kubernetes_replaces_pods_one_by_one(kubernetes, pod):
    """The new one first; and the service sends to what the deployment starts."""
    deployment, service = kubernetes["Deployment"], kubernetes["Service"]
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        kubernetes["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    assert service["spec"]["ports"][0]["targetPort"] in {
        port["name"] for port in pod["containers"][0]["ports"]
    }


@pytest.fixture(scope="module")
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    text = (DEPLOY / "app.service").read_text().replace("\\\n", " ")
    # Of options that are repeated, as Environment is, the parser would keep the last.
    counted = iter(range(100))
    text = re.sub(r"^Environment=", lambda _: f"Environment.{next(counted)}=", text, flags=re.M)
    parser.read_string(text)
    return parser


def test_systemd_leaves_the_stop_to_the_master(unit):
    """Only it gets SIGTERM, and there is time for all of the stop."""
    service = unit["Service"]
    assert (service["KillMode"], service["KillSignal"]) == ("mixed", "SIGTERM")
    environment = dict(
        value.split("=", 1) for name, value in service.items() if name.startswith("Environment.")
    )
    assert int(service["TimeoutStopSec"]) >= needed(environment)
    assert service["Type"] == "notify"


def test_systemd_starts_what_there_is(unit, serve: Callable[[Server], Server], tmp_path):
    """The command line works as it is, apart from where things are; rc 0 at SIGTERM."""
    command = shlex.split(unit["Service"]["ExecStart"])
    assert Path(command[0]).name == "gunicorn"
    port = free_port()
    command[command.index("--bind") + 1] = f"127.0.0.1:{port}"
    command[0] = str(ROOT / ".venv" / "bin" / "gunicorn")
    if not Path(command[0]).exists():
        command[0] = shutil.which("gunicorn") or pytest.skip("gunicorn is not on the path")
    env = {"RESILIENCE_RUNNER_DRAIN_DELAY": "0.2"}
    server = serve(Server(command, port, cwd=DEPLOY, env=env))
    server.wait_until_serving()
    assert get(server, DEFAULTS.health.ready_path).status == 200
    assert get(server).body == b'{"message":"hello"}'
    assert server.stop() == 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path):
    """By its own check, with the one path that does not exist here replaced."""
    text = (DEPLOY / "app.service").read_text().replace("/srv/app/.venv/bin/gunicorn", "/bin/true")
    (tmp_path / "app.service").write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "app.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "app.service" in line]
    assert ours == []


@pytest.fixture(scope="module")
def dockerfile() -> list[tuple[str, str]]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_has_no_shell_before_the_server(dockerfile):
    """Process 1 is the server, which gets SIGTERM, and is not root."""
    steps = dict(dockerfile)
    assert "ENTRYPOINT" not in steps
    assert steps["STOPSIGNAL"] == "SIGTERM"
    assert steps["USER"] != "root"
    assert isinstance(json.loads(steps["CMD"]), list)
    (copied, _) = steps["COPY"].split()
    assert (DEPLOY / copied).exists()


def test_the_command_of_the_image_stops_as_process_1(dockerfile, serve: Callable[[Server], Server]):
    """With the default times: not ready at once, and exit code 0 when nothing is left."""
    program, *arguments = json.loads(dict(dockerfile)["CMD"])
    assert program == "resilience-mw"
    port = free_port()
    arguments[arguments.index("--port") + 1] = str(port)
    arguments[arguments.index("--host") + 1] = "127.0.0.1"
    import sys

    command = [sys.executable, "-m", "resilience_mw", *arguments]
    server = serve(Server(command, port, cwd=DEPLOY))
    server.wait_until_serving()
    assert get(server, DEFAULTS.health.ready_path).status == 200
    server.signal(signal.SIGTERM)
    time.sleep(0.5)
    assert get(server, DEFAULTS.health.ready_path).status == 503
    assert get(server).ok
    assert server.wait(RUNNER.drain_delay + 5) == 0


@pytest.fixture(scope="module")
def nginx() -> str:
    return (DEPLOY / "nginx.conf").read_text()


def test_nginx_closes_idle_connections_first(nginx):
    """Before the app does; and connections are kept at all."""
    assert seconds(_directive(nginx, "keepalive_timeout")) < RUNNER.keep_alive_timeout
    assert _directive(nginx, "proxy_http_version") == "1.1"
    assert _directive(nginx, "proxy_set_header Connection") == '""'


def test_nginx_waits_longer_than_the_deadline(nginx):
    """So that the app is the one that answers 504."""
    assert DEFAULTS.deadline.timeout is not None
    assert seconds(_directive(nginx, "proxy_read_timeout")) > DEFAULTS.deadline.timeout
    around = Surroundings(lb_idle=seconds(_directive(nginx, "keepalive_timeout")))
    assert contradictions(DEFAULTS, around) == []


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_accepts_its_file(tmp_path):
    """By its own check."""
    command = ["nginx", "-t", "-p", str(tmp_path), "-c", str(DEPLOY / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def haproxy() -> str:
    return (DEPLOY / "haproxy.cfg").read_text()


def test_haproxy_notices_in_time(haproxy):
    """Two failed checks are over within the delay."""
    assert f"option httpchk GET {DEFAULTS.health.ready_path}" in haproxy
    inter, fastinter = (
        seconds(re.search(rf" {name} (\S+)", haproxy)[1])  # type: ignore[index]
        for name in ("inter", "fastinter")
    )
    assert " fall 2 " in haproxy
    slowest = inter + fastinter + seconds(_directive(haproxy, "timeout check"))
    assert slowest < RUNNER.drain_delay
    purge = seconds(re.search(r"pool-purge-delay (\S+)", haproxy)[1])  # type: ignore[index]
    # Half of what is idle is dropped each time.
    assert 2 * purge < RUNNER.keep_alive_timeout


def test_haproxy_waits_longer_than_the_deadline(haproxy):
    """So that the app is the one that answers 504."""
    assert DEFAULTS.deadline.timeout is not None
    assert seconds(_directive(haproxy, "timeout server")) > DEFAULTS.deadline.timeout


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed")
def test_haproxy_accepts_its_file():
    """By its own check."""
    command = ["haproxy", "-c", "-f", str(DEPLOY / "haproxy.cfg")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _directive(text: str, name: str) -> str:
    found = re.search(rf"^\s*{re.escape(name)}\s+([^;\n]+)", text, flags=re.M)
    assert found is not None, name
    return found[1].strip()
