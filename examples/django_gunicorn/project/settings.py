"""A project without a database, protected in MIDDLEWARE.

Run it, and look:

    gunicorn --worker-class gthread --threads 8 project.wsgi
    curl -i http://127.0.0.1:8000/ http://127.0.0.1:8000/readyz
"""

from __future__ import annotations

SECRET_KEY = "change me"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
USE_TZ = True

INSTALLED_APPS = ["resilience_mw.django"]  # system checks

MIDDLEWARE = [
    # First: what stands before it runs for refused requests, too.
    "resilience_mw.django.ResilienceMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
]

RESILIENCE = {
    # Below the number of threads: a middleware sees only requests that have one.
    "limit": {"max_concurrent_requests": 4},
    # Below Gunicorn's timeout of 30 seconds.
    "deadline": {"timeout": 10},
}
