"""Hand flags and a configuration file down to whatever resolves options in a server's processes.

An app that protects itself resolves its options when it is imported, perhaps in another process.
Flags reach it as the variables that spell the same options, beside a list of those that were
flags: a flag is typed for this one run, so that it counts more than what the code says.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, MutableMapping

from resilience_mw.config.option import BY_FLAG, CONFIG_FILE, Option
from resilience_mw.config.section import Section, options_of

Sections = Mapping[str, type[Section]]


def hand_down(
    environ: MutableMapping[str, str],
    sections: Sections,
    flags: Mapping[str, str],
    file: str | None = None,
) -> None:
    """Put flags, and the path of a TOML file, into an environment.

    Args:
        environ: what is changed.
        sections: the known ones.
        flags: the text of flags by dotted name; they have been checked.
        file: its path; ``None`` = leave what is there.
    """
    known = _by_dotted(sections)
    names = dict.fromkeys([*environ.get(BY_FLAG, "").split(), *flags])
    for dotted, text in flags.items():
        environ[known[dotted].env] = text
    if names:
        environ[BY_FLAG] = " ".join(names)
    if file is not None:
        environ[CONFIG_FILE] = os.path.abspath(file)


@contextlib.contextmanager
def handed_down(
    sections: Sections, flags: Mapping[str, str], file: str | None = None
) -> Iterator[None]:
    """Do that to this process's environment, meanwhile."""
    before = dict(os.environ)
    hand_down(os.environ, sections, flags, file)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def flags_in(environ: Mapping[str, str], sections: Sections) -> dict[str, str]:
    """Return the text of the flags that were handed down, by dotted name."""
    known = _by_dotted(sections)
    return {
        dotted: environ[known[dotted].env]
        for dotted in environ.get(BY_FLAG, "").split()
        if dotted in known and known[dotted].env in environ
    }


def _by_dotted(sections: Sections) -> dict[str, Option]:
    return {
        option.dotted: option
        for section in sections.values()
        for option in options_of(section).values()
    }
