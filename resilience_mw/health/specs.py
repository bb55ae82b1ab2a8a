"""Checks written as text, as they come from the environment, a flag or a settings file."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable

from ..config.wording import masked, one_line, show
from ..exceptions import ConfigError
from .address import parse_tcp
from .check import Check
from .disk import DiskCheck
from .django import DjangoDatabaseCheck
from .memory import MemoryCheck
from .redis import RedisCheck
from .tcp import TcpCheck
from .upstream import UpstreamCheck

KINDS = "http://, https://, unix:/, tcp://, redis://, disk:/, memory:, django: or module:attribute"


_LONGEST_REASON = 200
"""Characters of what went wrong in a module that is not ours."""


def from_spec(text: str) -> Check:
    """Return the check that `text` describes.

    ==========================  ================================================================
    ``http://host/page``        `UpstreamCheck`; so are ``https://``, ``http+unix://`` and
                                ``unix:/path/of/socket:/page``
    ``tcp://host:port``         `TcpCheck`
    ``redis://host:port/0``     `RedisCheck`; so are ``rediss://`` and
                                ``redis+unix:///path/of/socket``
    ``disk:/path``              `DiskCheck`; ``disk:/path?min_free=0.1`` sets the share
    ``memory:``                 `MemoryCheck`; ``memory:?max_used=0.9`` sets the share
    ``django:alias``            `DjangoDatabaseCheck`
    ``module:attribute``        a `Check`, or a callable that one is made of
    ==========================  ================================================================

    Everything else about them keeps its default; write the check in Python to change it.

    Raises:
        ConfigError: it describes no check, or the check refuses it. The message is one line,
            without the name of the option.
    """
    if not text.strip():
        raise ConfigError(f"a check must be {KINDS}, got {show(text)}")
    text = text.strip()
    kind = text.partition(":")[0].lower()
    build = _BUILDERS.get(kind) if ":" in text else None
    if build is not None:
        return build(text)
    return _imported(text)


def _tcp(text: str) -> Check:
    address = parse_tcp(text, "TcpCheck")
    return TcpCheck(address.host, address.port)


def _redis_socket(text: str) -> Check:
    # What the package calls unix://, which is the beginning of an upstream's address here.
    return RedisCheck("unix" + text[len("redis+unix") :])


def _disk(text: str) -> Check:
    path, share = _question(text, "DiskCheck", "min_free")
    return DiskCheck(path or "/") if share is None else DiskCheck(path or "/", min_free=share)


def _memory(text: str) -> Check:
    rest, share = _question(text, "MemoryCheck", "max_used")
    if rest:
        raise ConfigError(f"MemoryCheck must be memory: or memory:?max_used=0.9, got {show(text)}")
    return MemoryCheck() if share is None else MemoryCheck(max_used=share)


def _django(text: str) -> Check:
    return DjangoDatabaseCheck(text.partition(":")[2] or "default")


def _question(text: str, owner: str, option: str) -> tuple[str, float | None]:
    """Return what stands between the colon and a question mark, and the one number after it."""
    subject, mark, question = text.partition(":")[2].partition("?")
    if not mark:
        return subject, None
    name, _, number = question.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if name != option or not value > 0:
        raise ConfigError(f"{owner} takes ?{option}= and a number above 0, got {show(text)}")
    return subject, value


_BUILDERS: dict[str, Callable[[str], Check]] = {
    "http": UpstreamCheck,
    "https": UpstreamCheck,
    "http+unix": UpstreamCheck,
    "unix": UpstreamCheck,
    "tcp": _tcp,
    "redis": RedisCheck,
    "rediss": RedisCheck,
    "redis+unix": _redis_socket,
    "disk": _disk,
    "memory": _memory,
    "django": _django,
}


def _imported(text: str) -> Check:
    module, separator, attribute = text.partition(":")
    dotted = [*module.split("."), *attribute.split(".")]
    if not separator or not all(part.isidentifier() for part in dotted):
        raise ConfigError(f"a check must be {KINDS}, got {show(text)}")
    try:
        found: object = importlib.import_module(module)
    except ImportError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _failed(module, error) from error
        raise ConfigError(f"a check must be importable, and there is no {show(module)}") from None
    except Exception as error:
        raise _failed(module, error) from error
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise ConfigError(
            f"a check must be importable, and {show(module)} has no {show(attribute)}"
        ) from None
    if isinstance(found, Check):
        return found
    if inspect.isclass(found) or not callable(found):
        raise ConfigError(f"a check must be a Check or a function, got {show(text)}")
    return Check(found)


def _failed(module: str, error: Exception) -> ConfigError:
    reason = one_line(masked(f"{type(error).__name__}: {error}"), _LONGEST_REASON)
    return ConfigError(f"a check must be importable, and {show(module)} raises {reason}")
