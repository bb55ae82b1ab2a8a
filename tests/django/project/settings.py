"""The smallest project that serves requests."""

from __future__ import annotations

SECRET_KEY = "for tests only"
ALLOWED_HOSTS = ["*"]
USE_TZ = True
ROOT_URLCONF = "tests.django.project.urls"
INSTALLED_APPS = ["resilience_mw.django"]
MIDDLEWARE = ["resilience_mw.django.ResilienceMiddleware"]
WSGI_APPLICATION = "tests.django.project.wsgi.application"
# pytest captures what is logged; Django would mail or print it.
LOGGING_CONFIG = None
