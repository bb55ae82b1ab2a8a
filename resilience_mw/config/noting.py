"""What was given in code, remembered for whoever was built of it.

A guard keeps policies, not options. The runner, and `resilience-mw check`, ask here what the code
of an app has said.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from resilience_mw.config.section import Section

_noted: WeakKeyDictionary[object, tuple[Section, ...]] = WeakKeyDictionary()


def note(guard: object, inner: object, *parts: Section) -> None:
    """Remember that ``guard`` was built of these options, and of those of the app inside it.

    Args:
        guard: what was built.
        inner: the app that it wraps; a guard that has been merged is gone, but not what it was of.
        parts: the options given in code.
    """
    _noted[guard] = (*(part for part in parts if part.given), *noted(inner))


def noted(guard: object) -> tuple[Section, ...]:
    """Return the options of which ``guard`` was built, outermost first."""
    try:
        return _noted.get(guard, ())
    except TypeError:  # nothing that could have been remembered
        return ()
