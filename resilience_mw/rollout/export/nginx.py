"""The rules for nginx: one location a path, and `split_clients` for the shares.

nginx picks a location by the path alone, the most specific one first, while our rules are tried in
order. So each location has the rules that may be about its path, in their order, up to the first
without a further condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...core.rollout import RolloutRule
from ...core.rollout.hashing import PLACES
from .plan import ODD, Plan, covers, listener


def nginx(plan: Plan, *, listen: str = "8080") -> list[str]:
    """Return the lines of a file to include in nginx's ``http`` block.

    Args:
        plan: the roll-out.
        listen: what the server in it listens on: a port, or ``host:port``.
    """
    return list(_Writer(plan).lines(listener(listen)))


class _Writer:
    """Writes one file."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.name = plan.name
        self.old, self.new = f"{plan.name}_old", f"{plan.name}_new"
        taken: set[str] = set()
        self._words: dict[str, str] = {}
        for rule in plan.rules:
            word = re.sub(r"\W", "_", rule.name)
            while word in taken:
                word += "_"
            taken.add(word)
            self._words[rule.name] = word
        self._routes: dict[tuple[str, ...], str] = {}
        self._maps: list[str] = []

    def lines(self, listen: str) -> Iterator[str]:
        locations = self._locations()
        yield from _comments(
            "Written by `resilience-mw export nginx`, to be included in http { }.",
            "Whoever has a server of their own takes the locations from the one below.",
            *self.plan.notes,
        )
        for name, address in ((self.old, self.plan.old), (self.new, self.plan.new)):
            yield f"upstream {name} {{"
            yield f"    server {address};"
            yield "    keepalive 32;"
            yield "}"
        yield ""
        yield from _comments(
            "Paths that nginx and the app behind it may read differently: the old stack's."
        )
        yield f"map $request_uri ${self.name}_odd {{"
        yield "    default 0;"
        yield f"    {_quoted('~*' + ODD)} 1;"
        yield "}"
        yield ""
        yield from _comments("Websockets are passed on, and no other protocol.")
        yield f"map $http_upgrade ${self.name}_upgrade {{"
        yield "    ~*^websocket$ websocket;"
        yield '    default "";'
        yield "}"
        yield f"map ${self.name}_upgrade ${self.name}_connection {{"
        yield "    websocket upgrade;"
        yield '    default "";'
        yield "}"
        for rule in self.plan.rules:
            yield ""
            yield from _comments(*self.plan.remarks(rule))
            yield from self._split(rule)
        yield from self._maps
        yield ""
        yield "server {"
        yield f"    listen {listen};"
        yield "    proxy_http_version 1.1;"
        yield f"    proxy_set_header Connection ${self.name}_connection;"
        yield f"    proxy_set_header Upgrade ${self.name}_upgrade;"
        yield "    proxy_set_header Host $http_host;"
        yield "    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"
        yield "    proxy_set_header X-Forwarded-Proto $scheme;"
        for where, target in locations:
            yield ""
            yield f"    location {where} {{"
            yield f"        proxy_pass http://{target};"
            yield "    }"
        yield "}"

    def _locations(self) -> list[tuple[str, str]]:
        """Return each location and the upstream, or the variable that holds it."""
        rules = self.plan.rules
        exact = [rule.path for rule in rules if rule.path is not None]
        below = [rule.prefix.rstrip("/") + "/" for rule in rules if rule.prefix not in (None, "/")]
        # Without a location of its own, nginx redirects /shop to the location of /shop/.
        exact += [path[:-1] for path in below]
        found = [(f"= {_quoted(path)}", self._route(path)) for path in dict.fromkeys(exact)]
        found += [
            (f"^~ {_quoted(path)}", self._route(path, below=True)) for path in dict.fromkeys(below)
        ]
        return [*found, ("/", self._route("/", below=True))]

    def _route(self, path: str, *, below: bool = False) -> str:
        """Return the upstream of a location, which may be all ``below`` a path."""
        chain: list[RolloutRule] = []
        for rule in self.plan.rules:
            if (below and rule.path is not None) or not covers(rule, path):
                continue
            chain.append(rule)
            if not rule.methods and rule.host is None:
                break
        if all(not self.plan.places(rule) for rule in chain):
            return self.old
        names = tuple(rule.name for rule in chain)
        if names not in self._routes:
            self._routes[names] = f"${self.name}_route_{len(self._routes) + 1}"
            self._maps += self._map(self._routes[names], chain)
        return self._routes[names]

    def _map(self, variable: str, chain: Sequence[RolloutRule]) -> Iterator[str]:
        yield ""
        yield from _comments("In order: " + ", ".join(rule.name for rule in chain) + ".")
        if len(chain) == 1 and not chain[0].methods and chain[0].host is None:
            yield f"map ${self.name}_odd {variable} {{"
            yield f"    0 {self._target(chain[0])};"
            yield f"    default {self.old};"
            yield "}"
            return
        yield f'map "${self.name}_odd $request_method $host" {variable} {{'
        for rule in chain:
            method = f"(?:{'|'.join(map(re.escape, rule.methods))})" if rule.methods else r"\S+"
            host = ".*" if rule.host is None else re.escape(rule.host)
            yield f"    {_quoted(f'~^0 {method} {host}$')} {self._target(rule)};"
        yield f"    default {self.old};"
        yield "}"

    def _target(self, rule: RolloutRule) -> str:
        places = self.plan.places(rule)
        if places in (0, PLACES):
            return self.new if places else self.old
        return f"${self.name}_{self._words[rule.name]}"

    def _split(self, rule: RolloutRule) -> Iterator[str]:
        """Write how a rule's share is drawn, if it is neither nothing nor all."""
        places, variable = self.plan.places(rule), self._target(rule)
        if places in (0, PLACES):
            return
        word = self._words[rule.name]
        user, drawn = f"${self.name}_user_{word}", f"${self.name}_drawn_{word}"
        if rule.by == "request":
            source, drawn = "$request_id", variable
        elif rule.by == "server":
            source, drawn = "$hostname", variable
        elif rule.cookie is not None:
            source = user
            pattern = rf"~(?:^|;)\s*{re.escape(rule.cookie)}=\s*(?<{user[1:]}_value>[^;\s][^;]*)"
            yield f"map $http_cookie {user} {{"
            yield '    default "";'
            yield f"    {_quoted(pattern)} {user}_value;"
            yield "}"
        elif rule.header is not None:
            source = f"$http_{rule.header.lower().replace('-', '_')}"
        else:
            source, drawn = "$remote_addr", variable
        yield f'split_clients "{rule.name} {source}" {drawn} {{'
        yield f"    {places / 100:g}% {self.new};"
        yield f"    * {self.old};"
        yield "}"
        if drawn != variable:
            yield f"map {source} {variable} {{"
            yield f"    default {drawn};"
            yield f'    "" {self.old};'
            yield "}"


def _comments(*texts: str) -> Iterator[str]:
    return (f"# {text}" for text in texts)


def _quoted(text: str) -> str:
    """Return a text as nginx reads it, in quotes where it needs them."""
    if re.fullmatch(r"[\w/.-]+", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
