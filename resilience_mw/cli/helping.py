"""Help in parts: what is a command's own first, then the declared options by their sections."""

from __future__ import annotations

import click

from resilience_mw.config import Config, options_of


class SectionedCommand(click.Command):
    """A command some of whose flags are declared options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags, one heading for each section."""
        sections = {
            option.flag: name
            for name, section in Config.sections().items()
            for option in options_of(section).values()
        }
        parts: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and record is not None:
                section = next((sections[flag] for flag in parameter.opts if flag in sections), "")
                parts.setdefault(section, []).append(record)
        own = parts.pop("", [])
        with formatter.section("Options"):
            formatter.write_dl(own)
        for name, records in parts.items():
            with formatter.section(f"{name.capitalize()}, as Config({name}=...) and [{name}]"):
                formatter.write_dl(records)
