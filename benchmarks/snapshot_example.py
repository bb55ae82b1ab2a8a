"""The example of a snapshot in docs/how-it-decides.md, from a real server in a real overload.

    python -m benchmarks.snapshot_example

Uvicorn serves a handler of 10 ms of CPU, and is sent twice what it can serve; after some seconds
it is asked for its snapshot.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import urllib.request
from dataclasses import asdict, is_dataclass
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response

from benchmarks.apps.work import cpu
from benchmarks.filling import ROOT, fill
from benchmarks.load import Load, Target, closed_loop, open_loop, run
from benchmarks.servers import Server, uvicorn
from resilience_mw import Backpressure, Config, protect
from resilience_mw.core import Snapshot

PAGE = ROOT / "docs" / "how-it-decides.md"
SECONDS = 6.0

api = FastAPI(openapi_url=None)


@api.get("/compute")
async def compute() -> PlainTextResponse:
    """10 ms of CPU without an `await`."""
    cpu(10)
    return PlainTextResponse("done")


@api.get("/snapshot")
async def snapshot() -> Response:
    """What the guard knows; never refused, since it is exempt."""
    return Response(rendered(app.snapshot()), media_type="application/json")


app = protect(api, Config(backpressure=Backpressure(exempt=("/snapshot",))))


def rendered(state: Snapshot) -> str:
    """Return a snapshot as JSON, with times to a tenth of a millisecond."""
    return json.dumps(_rounded(asdict(state)), indent=2)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [asdict(inner) if is_dataclass(inner) else _rounded(inner) for inner in value]  # type: ignore[arg-type]
    return value


async def _overload(server: Server) -> str:
    target = Target.parse(urlsplit(server.url)._replace(path="/compute").geturl())
    capacity = (await closed_loop(target, connections=4, seconds=2.0, warm_up=0.5)).rate
    load = Load.steady(2 * capacity, SECONDS)
    sending = asyncio.ensure_future(open_loop(target, load))
    await asyncio.sleep(SECONDS - 1.0)
    url = urlsplit(server.url)._replace(path="/snapshot").geturl()
    state = await asyncio.to_thread(_get, url)
    await sending
    return state


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as response:
        body: bytes = response.read()
    return body.decode()


def main() -> None:
    """Overload a server, and fill the page."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "").parse_args()
    with uvicorn("benchmarks.snapshot_example:app") as server:
        state = run(_overload(server))
    fill(PAGE, "snapshot", f"```json\n{state}\n```")


if __name__ == "__main__":
    main()
