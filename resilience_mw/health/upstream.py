"""Whether the next tier answers, asked on a connection that nobody else uses."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Collection, Mapping
from typing import Unpack

from ..config.wording import masked, show
from ..core.tokens import is_token
from ..exceptions import ConfigError
from .address import Target, parse_host, parse_url
from .check import Check, CheckFailed
from .connecting import Connector, reasons
from .keywords import CheckOptions
from .response import MAX_HEAD, read_status

_VALUE = re.compile(r"[\t\x20-\x7e]*")


class UpstreamCheck(Check):
    """Ask the next tier for a page, and pass when it answers with the expected status in time.

    Each time on a fresh connection of its own: the pool through which the app asks the same tier
    may be busy for seconds while the tier is well. Redirects are not followed, at most 64 KiB of
    head and 64 KiB of body are read, and proxies named in the environment are not used.

        UpstreamCheck("http://127.0.0.1:7001/status", timeout=0.8)
        UpstreamCheck("https://orders.internal/healthz", ca="/etc/ssl/internal.pem")
        UpstreamCheck("unix:/run/orders.sock:/status")

    Args:
        url: ``http://``, ``https://``, ``unix:/path/of/socket:/page``, or the same as
            ``http+unix://%2Fpath%2Fof%2Fsocket/page``; IPv6 addresses in brackets.
        timeout: seconds for the look-up, the connection and the whole answer together.
        expect: the status that passes, or a collection of them such as ``range(200, 300)``.
        method: ``GET``, or ``HEAD`` for a page that is long.
        headers: sent in addition to ours.
        host: whom to ask for at that address, where it is not the URL's host: sent as Host, and
            the name that the certificate must be for.
        ca: file or directory of PEM certificates to trust instead of the system's.
        ssl_context: how to speak TLS, instead of `ca`.
        options: those of `Check`; the interval is 1 s unless given.

    Attributes:
        status: status of the last answer, ``None`` before the first and when there was none.

    Reasons of failure: ``status 500``, ``timeout``, ``dns``, ``refused``, ``unreachable``,
    ``no socket``, ``closed``, ``cut short``, ``certificate``, ``tls``, ``bad response``.

    Raises:
        ConfigError: an argument breaks its rule.
    """

    def __init__(
        self,
        url: str,
        timeout: float = 0.8,
        *,
        expect: int | Collection[int] = 200,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        host: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        **options: Unpack[CheckOptions],
    ) -> None:
        # A balancer asks once a second, and what it sees is up to an interval old.
        options.setdefault("interval", 1.0)
        super().__init__(self._ask, timeout=timeout, **options)
        target = parse_url(url, "UpstreamCheck")
        if method not in ("GET", "HEAD"):
            raise ConfigError(f"UpstreamCheck method must be GET or HEAD, got {show(method)}")
        self._subject = masked(url).partition("?")[0]
        self.status: int | None = None
        self._expected = _statuses(expect)
        self._method = method
        asked = target.address.host if host is None else parse_host(host, "UpstreamCheck")
        self._request = _request(method, target, host, {} if headers is None else headers)
        self._connector = Connector(target.address)
        self._tls = _context(ca, ssl_context) if target.secure else None
        # A certificate names neither a zone nor the dot at the end.
        self._server_name = asked.partition("%")[0].rstrip(".") if target.secure else None

    async def _ask(self) -> None:
        # Until then it is what it was: two apps may share this check, and read it meanwhile.
        try:
            with reasons():
                async with asyncio.timeout(self.timeout):
                    status = await self._answer()
        except Exception:
            self.status = None
            raise
        self.status = status
        if status not in self._expected:
            raise CheckFailed(f"status {status}")

    async def _answer(self) -> int:
        connection = await self._connector.open(self.timeout)
        try:
            reader, writer = await asyncio.open_connection(
                sock=connection,
                limit=MAX_HEAD,
                ssl=self._tls,
                server_hostname=self._server_name,
            )
        except BaseException:
            connection.close()
            raise
        try:
            writer.write(self._request)
            return await read_status(reader, self._method)
        finally:
            # Not close(): over TLS that waits for a peer which may say nothing any more.
            writer.transport.abort()


def _statuses(expect: object) -> frozenset[int]:
    wanted = [expect] if isinstance(expect, int) else expect
    if isinstance(wanted, Collection) and not isinstance(wanted, str | bytes):
        statuses = frozenset(wanted)
        if statuses and all(isinstance(s, int) and 200 <= s <= 599 for s in statuses):
            return statuses
    raise ConfigError(
        f"UpstreamCheck expect must be a status between 200 and 599, or several, got {show(expect)}"
    )


def _request(method: str, target: Target, host: str | None, headers: object) -> bytes:
    fields: dict[str, object] = {
        "Host": host or target.host,
        "User-Agent": "resilience-mw",
        "Accept": "*/*",
    }
    if not isinstance(headers, Mapping):
        raise ConfigError(f"UpstreamCheck headers must be a mapping, got {show(headers)}")
    for name, value in headers.items():
        if not is_token(name):
            raise ConfigError(f"UpstreamCheck headers must have valid names, got {show(name)}")
        if name.lower() in ("host", "connection", "content-length", "transfer-encoding"):
            raise ConfigError(f"UpstreamCheck headers must not set {name} (host= sets Host)")
        # Ours of the same name gives way, in whatever case it is written.
        fields = {known: text for known, text in fields.items() if known.lower() != name.lower()}
        fields[name] = value
    for name, value in fields.items():
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            # The value itself may be a secret.
            raise ConfigError(f"UpstreamCheck {name} must be printable ASCII text")
    lines = [f"{method} {target.resource} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    lines += ["Connection: close", "", ""]
    return "\r\n".join(lines).encode("ascii")


def _context(
    ca: str | os.PathLike[str] | None, ssl_context: ssl.SSLContext | None
) -> ssl.SSLContext:
    if ssl_context is not None:
        if ca is not None:
            raise ConfigError("UpstreamCheck takes ca or ssl_context, not both")
        if not isinstance(ssl_context, ssl.SSLContext):
            raise ConfigError(
                f"UpstreamCheck ssl_context must be an SSLContext, got {show(ssl_context)}"
            )
        return ssl_context
    if ca is None:
        return ssl.create_default_context()
    try:
        if os.path.isdir(ca):
            return ssl.create_default_context(capath=ca)
        return ssl.create_default_context(cafile=ca)
    except (OSError, TypeError) as error:
        # ssl.SSLError is an OSError too.
        raise ConfigError(
            f"UpstreamCheck ca must be a file or directory of PEM certificates, got {show(ca)} "
            f"({type(error).__name__})"
        ) from None
