"""The Django app, which brings the system checks."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks


class ResilienceConfig(AppConfig):
    """Registers the checks; the middleware works without it."""

    name = "resilience_mw.django"
    label = "resilience_mw"
    verbose_name = "Overload protection"

    def ready(self) -> None:
        """Register the system checks under the tag ``resilience_mw``."""
        from .checks import check_deployment, check_options, check_placement

        checks.register(check_options, "resilience_mw")
        checks.register(check_placement, "resilience_mw")
        checks.register(check_deployment, "resilience_mw", deploy=True)
