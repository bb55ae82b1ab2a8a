"""Two WSGI apps behind one door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.rollout import RolloutGuard, RolloutRule
from ..core.rollout.lane import Lane
from ..core.rollout.policy import UNKNOWN
from ..keywords import strict
from ..rollout.assembly import Assembly, RolloutOptions
from ..rollout.stack import is_url
from ..rollout.stores import Store
from ..types import Environ, StartResponse, WSGIApp
from .exchange import exchange_of
from .fallback import FallbackVariant
from .guard import Guard
from .variants import Variant
from .watch import Watch


@strict
class RolloutMiddleware(Guard):
    """Send a share of some requests to a new stack, and take them back at once.

    Its snapshot has a `resilience_mw.core.RolloutSnapshot` among ``policies``.

    Args:
        app: the old WSGI app: what no rule is about stays there.
        new: the new one: a WSGI app, ``"module:app"``, or ``"http://host:port"`` of a process
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
        >>> def old(environ, start_response): ...
        >>> def new(environ, start_response): ...
        >>> rule = RolloutRule("cart", path="/cart", percent=2, by="user", cookie="session")
        >>> app = RolloutMiddleware(old, new=new, rules=[rule])
    """

    merges = False
    protects = False

    def __init__(
        self,
        app: WSGIApp,
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
        assembly = Assembly(app, options, "wsgi")
        super().__init__(app, assembly.policy)
        self.new: WSGIApp = assembly.new
        self._proxy: Any = assembly.new if is_url(new) else None
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
            None if name is None else (name, variant) for variant in ("old", "new")
        )
        section = self._section
        watch = Watch((lane.old, lane.new), section)
        old = Variant(self.app, lane.old, old_label, section, watch)
        if not options.fallback:
            return (
                old,
                Variant(self.new, lane.new, new_label, section, watch),
                Variant(self.new, lane.testers, new_label, section, watch),
            )
        back: dict[str, Any] = {"old": self.app, "old_label": old_label, "name": lane.rule.name}
        return (
            old,
            FallbackVariant(self.new, lane.new, new_label, section, watch, **back),
            FallbackVariant(self.new, lane.testers, new_label, section, watch, **back),
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one WSGI request."""
        path = environ.get("PATH_INFO", "")
        lane = self._known.get(path, self._unknown)
        plain = path.isascii()  # else each byte of its UTF-8 is a character here
        if lane is None and plain:
            return self.app(environ, start_response)
        variant: Variant | None
        raw = environ.get("RAW_URI") or environ.get("REQUEST_URI") or ""
        if lane is UNKNOWN or not plain or "%" in raw:
            variant = self._choose(environ)
        elif lane.chosen is not None:
            variant = lane.apps[lane.chosen]
        elif lane.by_chance:
            variant = lane.apps[lane.draws_new()]
        else:
            variant = lane.apps[lane.chooses_new(exchange_of(environ))]
        return (variant or self.app)(environ, start_response)

    def _choose(self, environ: Environ) -> Variant | None:
        """Return the variant that serves the request; ``None`` = no rule is about it."""
        if self._known is not self._policy.known:
            self.begin_serving()
        exchange = exchange_of(environ)
        self._policy.enter(exchange)
        variant: Variant | None = exchange.target
        return variant

    def begin_serving(self) -> None:
        """Tell the store the rules that it does not have, as the first request does."""
        self._known = self._policy.known
        self._unknown = self._policy.unknown
        self._link.serve()

    def close(self) -> None:
        """Stop following the store, and close a proxy's connections; requests are still served."""
        self._link.close()
        if self._proxy is not None:
            self._proxy.close()
