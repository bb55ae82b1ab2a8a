"""How the apps of these tests are protected."""

from __future__ import annotations

from resilience_mw import Backpressure, Config

EXEMPT = ("/snapshot",)

CONFIGS = {
    "plain": Config(backpressure=Backpressure(exempt=EXEMPT)),
    "ranked": Config(
        backpressure=Backpressure(
            exempt=EXEMPT, priority="X-Priority", trusted_proxies=("127.0.0.0/8",)
        )
    ),
    "small": Config(
        backpressure=Backpressure(
            law="aimd", max_limit=2, queue_size=3, queue_timeout=0.2, exempt=EXEMPT
        )
    ),
    "small, tried out": Config(
        backpressure=Backpressure(
            law="aimd", max_limit=2, queue_size=3, queue_timeout=0.2, exempt=EXEMPT, dry_run=True
        )
    ),
}
