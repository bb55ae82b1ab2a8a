"""Which options will be in force for an app, and where each came from: for `check`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from resilience_mw.config import Config, Resolved, resolve
from resilience_mw.runner.given import over
from resilience_mw.runner.inspecting import code_of, settings_of
from resilience_mw.runner.reach import out_of_reach, why
from resilience_mw.runner.wrap import is_wrapped

Idle = tuple[tuple[str, str], ...]

MASTER = "Gunicorn's master has to know it before it loads the app; set it in the environment"


def in_force(
    app: Any, flags: Iterable[str], namespace: Mapping[str, Any], *, gunicorn: bool
) -> tuple[Resolved, Idle]:
    """Resolve the options with every source that counts.

    Args:
        app: the app, imported.
        flags: the dotted names of those that were typed; they have been handed down.
        namespace: the variables of Gunicorn's configuration file.
        gunicorn: whether the server is Gunicorn.

    Returns:
        The options, and those that were given where they do not count: names, and why.
    """
    code, protected = code_of(app), is_wrapped(app)
    conf = namespace.get("RESILIENCE")
    given = conf if isinstance(conf, Config) else Config()
    served = resolve(given if gunicorn else over(given, code), settings=_settings(app, namespace))
    if not protected:
        lost = () if served.config.runner.protect else out_of_reach(app, flags)
        return served, tuple((name, why(app)) for name in lost)
    built = resolve(code, settings=settings_of(app) or None)
    config = replace(built.config, runner=served.config.runner)
    sources = {
        name: source if name.startswith("runner.") else built.sources[name]
        for name, source in served.sources.items()
    }
    for name in code.given:
        if sources[name] == "argument":
            sources[name] = "code"
    idle = [(name, why(app)) for name in out_of_reach(app, flags)]
    if gunicorn:
        idle += [(f"{name}, in code,", MASTER) for name in code.given if name.startswith("runner.")]
    return Resolved(config, sources), tuple(sorted(idle))


def _settings(app: Any, namespace: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    settings: dict[str, dict[str, Any]] = {}
    for section, values in settings_of(app).items():
        settings.setdefault(section, {}).update(values)
    if namespace:
        from resilience_mw.runner.gunicorn.resolving import variables

        for section, values in variables(namespace).items():
            settings.setdefault(section, {}).update(values)
    return settings or None
