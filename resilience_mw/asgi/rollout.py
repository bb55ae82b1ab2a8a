"""Two ASGI apps behind one door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from ..core.rollout import RolloutGuard, RolloutRule
from ..core.rollout.lane import Lane
from ..core.rollout.policy import UNKNOWN
from ..keywords import strict
from ..rollout.assembly import Assembly, RolloutOptions
from ..rollout.fallback import SAFE
from ..rollout.stores import Store
from ..types import ASGIApp, Receive, Scope, Send
from .exchange import exchange_of
from .fallback import Fallback
from .guard import Guard
from .lifespans import serve_both
from .variants import Response, Variant


@strict
class RolloutMiddleware(Guard):
    """Send a share of some requests to a new stack, and take them back at once.

    Its snapshot has a `resilience_mw.core.RolloutSnapshot` among ``policies``.

    Args:
        app: the old ASGI app: what no rule is about stays there.
        new: the new one: an ASGI app, ``"module:app"``, or ``"http://host:port"`` of a process
            that is one, through a reverse proxy.
        rules: tried in this order; the first that is about a request decides.
        server_name: what this server is called, in rules by server. Default: the host's name.
        store: where the shares live, ``"file:/etc/shop/rollout.toml"`` or
            ``"redis://127.0.0.1:6379/0"``; ``None`` = in the code.
        guard: whether a new stack that is worse is taken back by itself, and how much worse.
        fallback: whether GET, HEAD and OPTIONS requests that the new stack does not begin to answer
            go to the old one, once.
        variant_header: a response header that says ``new`` or ``old``.
        tester_header: a request header with which a trusted proxy may choose: ``new``, ``old``, or
            names of rules for which it shall be the new stack.
        tester_cookie: a cookie, signed by `resilience_mw.rollout.sign_tester`, for the new stack.
        tester_secret: what that is signed with, at least 16 characters.
        trusted_proxies: addresses, networks, ``*`` or ``unix``: whose ``tester_header`` and
            ``X-Forwarded-For`` count.

    Raises:
        ConfigError: an option breaks its rule.

    Example:
        >>> async def old(scope, receive, send): ...
        >>> async def new(scope, receive, send): ...
        >>> rule = RolloutRule("cart", path="/cart", percent=2, by="user", cookie="session")
        >>> app = RolloutMiddleware(old, new=new, rules=[rule])
    """

    merges = False
    protects = False

    def __init__(
        self,
        app: ASGIApp,
        *,
        new: Any,
        rules: Sequence[RolloutRule],
        server_name: str | None = None,
        store: str | Store | None = None,
        guard: bool | RolloutGuard = True,
        fallback: bool = False,
        variant_header: str | None = None,
        tester_header: str | None = None,
        tester_cookie: str | None = None,
        tester_secret: str | None = None,
        trusted_proxies: Sequence[str] = (),
    ) -> None:
        options = RolloutOptions(
            new=new,
            rules=rules,
            server_name=server_name,
            store=store,
            guard=guard,
            fallback=fallback,
            variant_header=variant_header,
            tester_header=tester_header,
            tester_cookie=tester_cookie,
            tester_secret=tester_secret,
            trusted_proxies=trusted_proxies,
        )
        assembly = Assembly(app, options, "asgi")
        super().__init__(app, assembly.policy)
        self.new: ASGIApp = assembly.new
        self._policy = assembly.policy
        self._link = assembly.link
        # Until the first request, which thereby passes `_choose`, without a test in all others.
        self._known: Mapping[str, Lane | None] = {}
        self._unknown: Any = UNKNOWN
        for lane in self._policy.lanes:
            lane.apps = self._variants(lane, options)

    def _variants(self, lane: Lane, options: RolloutOptions) -> tuple[Variant, Variant, Variant]:
        name = options.variant_header
        old_label, new_label = (
            None if name is None else (name.lower().encode(), variant)
            for variant in (b"old", b"new")
        )
        old = Variant(self.app, lane.old, old_label)
        new = Variant(self.new, lane.new, new_label)
        testers = Variant(self.new, lane.testers, new_label)
        if options.fallback:
            for variant in (new, testers):
                variant.back = Fallback(variant, self.app, old_label, lane.rule.name)
        return old, new, testers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._serve_other(scope, receive, send)
            return
        lane = self._known.get(scope["path"], self._unknown)
        root = scope.get("root_path")
        if lane is None and not root:
            await self.app(scope, receive, send)
            return
        variant: Variant | None
        if lane is UNKNOWN or root or b"%" in (scope.get("raw_path") or b""):
            variant = self._choose(scope, send)
            if variant is None:
                await self.app(scope, receive, send)
                return
        elif lane.chosen is not None:
            variant = lane.apps[lane.chosen]
        elif lane.by_chance:
            variant = lane.apps[lane.draws_new()]
        else:
            variant = lane.apps[lane.chooses_new(exchange_of(scope, send))]
        if variant.back is not None and scope["method"] in SAFE:
            await variant.back(scope, receive, send)
            return
        # As in `watch`, whose call is a tenth of what all this costs.
        response = Response()
        response.variant = variant
        response.scope = scope
        response.server_send = send
        response.status = 0
        response.began = now = monotonic()
        meter = variant.meter
        if meter.running is not None:
            meter.running.add(response)
            if now >= meter.look_at:
                meter.look(now)
        try:
            await variant.app(scope, receive, response.send)
        except BaseException as error:
            response.end(error)
            raise
        if not response.status:
            response.end(None)

    def _choose(self, scope: Scope, send: Send) -> Variant | None:
        """Return the variant that serves the request; ``None`` = no rule is about it."""
        if self._known is not self._policy.known:
            self.begin_serving()
        exchange = exchange_of(scope, send)
        self._policy.enter(exchange)
        variant: Variant | None = exchange.target
        return variant

    async def _serve_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Start and stop both apps; give a websocket to one of them, as its handshake would be."""
        if scope["type"] == "lifespan":
            self._link.serve()
            self._link.start()
            try:
                await serve_both(self.app, self.new, self._serve_new_by, scope, receive, send)
            finally:
                self._serve_new_by(self.new)
                self.close()
            return
        websocket = scope["type"] == "websocket"
        variant = self._choose(scope, send) if websocket else None
        self.websockets += websocket
        try:
            await (self.app if variant is None else variant.app)(scope, receive, send)
        finally:
            self.websockets -= websocket

    def _serve_new_by(self, app: ASGIApp) -> None:
        for lane in self._policy.lanes:
            for variant in lane.apps[1:]:
                variant.app = app

    def begin_serving(self) -> None:
        """Tell the store the rules that it does not have, as the first request does."""
        self._known = self._policy.known
        self._unknown = self._policy.unknown
        self._link.serve()

    def close(self) -> None:
        """Stop following the store; the last known shares stand."""
        self._link.close()
        super().close()
