"""Where a check connects to: the parts of a URL, read once and strictly."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from ..config.wording import show
from ..exceptions import ConfigError

LONGEST_SOCKET_PATH = 107
"""Bytes of a Unix socket's path that fit into Linux' ``sockaddr_un`` beside the final zero."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")


@dataclass(frozen=True, slots=True)
class Address:
    """A host and port, or a Unix socket.

    Args:
        host: name or IP address, without brackets; empty for a Unix socket.
        port: TCP port; 0 for a Unix socket.
        path: the Unix socket's path; empty for TCP.
    """

    host: str = ""
    port: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to ask, and for what.

    Args:
        address: where to connect.
        secure: whether to speak TLS.
        host: what to send as Host, with the port unless it is the scheme's own.
        resource: path and query, percent-encoded.
    """

    address: Address
    secure: bool
    host: str
    resource: str


def parse_url(url: object, owner: str) -> Target:
    """Read ``http://``, ``https://``, ``http+unix://%2Fsocket/path`` or ``unix:/socket:/path``.

    Args:
        url: the address; a fragment is dropped.
        owner: whose argument it is, for the message.

    Raises:
        ConfigError: it is none of these; no message repeats a password.
    """
    if not isinstance(url, str):
        raise ConfigError(f"{owner} url must be text, got {show(url)}")
    if url.startswith("unix:"):
        return _unix(url, owner)
    parts = _split(url, owner)
    if parts.scheme == "http+unix":
        path = unquote(parts.netloc)
        return Target(_socket(path, url, owner), False, "localhost", _resource(parts, url, owner))
    if parts.scheme not in _DEFAULT_PORTS:
        raise ConfigError(
            f"{owner} url must begin with http://, https://, http+unix:// or unix:/, "
            f"got {show(url)}"
        )
    address = host_and_port(parts, owner, url, _DEFAULT_PORTS[parts.scheme])
    # A zone is this machine's business alone (RFC 6874, section 4).
    name = address.host.partition("%")[0]
    host = f"[{name}]" if ":" in name else name
    if address.port != _DEFAULT_PORTS[parts.scheme]:
        host += f":{address.port}"
    return Target(address, parts.scheme == "https", host, _resource(parts, url, owner))


def parse_host(host: object, owner: str) -> str:
    """Return the name in ``name`` or ``name:port`` as it goes over the wire, without a port.

    Raises:
        ConfigError: it holds none.
    """
    if not isinstance(host, str):
        raise ConfigError(f"{owner} host must be text, got {show(host)}")
    parts = _split(f"http://{host}", owner)
    if parts.netloc != host:
        raise ConfigError(f"{owner} host must be a name or an IP address, got {show(host)}")
    return host_and_port(parts, owner, host, 80).host


def parse_tcp(url: str, owner: str) -> Address:
    """Read ``tcp://host:port``.

    Raises:
        ConfigError: it is something else.
    """
    parts = _split(url, owner)
    if parts.path or parts.query or parts.fragment:
        raise ConfigError(f"{owner} must be tcp://host:port and nothing more, got {show(url)}")
    return host_and_port(parts, owner, url, None)


def host_and_port(parts: SplitResult, owner: str, url: str, default: int | None) -> Address:
    """Return the host and port of a split URL, `default` being the port when it names none.

    Raises:
        ConfigError: no or a malformed host, no port and no default, a port out of range.
    """
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"{owner} port must be between 1 and 65535, got {show(url)}") from None
    if port is None:
        port = default
    if port is None:
        raise ConfigError(f"{owner} must name a port, as in tcp://host:port, got {show(url)}")
    return checked(host, port, owner)


def checked(host: object, port: object, owner: str) -> Address:
    """Return `host` and `port` as an address, the host in the form that goes over the wire.

    Raises:
        ConfigError: one of them is none.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
        raise ConfigError(f"{owner} port must be between 1 and 65535, got {show(port)}")
    if not isinstance(host, str) or not host:
        raise ConfigError(f"{owner} must name a host, got {show(host)}")
    return Address(_wire(host.replace("%25", "%", 1), owner), port)


def _wire(host: str, owner: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{owner} host must be a name or an IP address, got {show(host)}")
    return name


def _split(url: str, owner: str) -> SplitResult:
    if _UNPRINTABLE.search(url):
        # urlsplit drops some of these without a word, and asks for another page than was written.
        raise ConfigError(f"{owner} url must hold no blanks or control characters, got {show(url)}")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"{owner} url must be a URL, got {show(url)} ({error})") from None
    if "@" in parts.netloc:
        raise ConfigError(f"{owner} url must hold no user name or password (send a header instead)")
    return parts


def _unix(url: str, owner: str) -> Target:
    path, separator, rest = url.removeprefix("unix:").partition(":/")
    if not separator:
        raise ConfigError(f"{owner} url must be unix:/path/of/socket:/page, got {show(url)}")
    parts = _split(f"http://localhost/{rest}", owner)
    return Target(_socket(path, url, owner), False, "localhost", _resource(parts, url, owner))


def _socket(path: str, url: str, owner: str) -> Address:
    if not path.startswith("/") or "\x00" in path:
        raise ConfigError(f"{owner} socket must be an absolute path, got {show(url)}")
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise ConfigError(
            f"{owner} socket must be a path of at most {LONGEST_SOCKET_PATH} bytes, got {show(url)}"
        )
    return Address(path=path)


def _resource(parts: SplitResult, url: str, owner: str) -> str:
    resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not resource.isascii():
        raise ConfigError(f"{owner} url must be percent-encoded, got {show(url)}")
    return resource
