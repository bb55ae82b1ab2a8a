"""A project without a database, protected around the application in asgi.py.

Run it, and look:

    uvicorn project.asgi:application
    curl -i http://127.0.0.1:8000/ http://127.0.0.1:8000/readyz
"""

from __future__ import annotations

SECRET_KEY = "change me"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "project.urls"
ASGI_APPLICATION = "project.asgi.application"
USE_TZ = True

INSTALLED_APPS = ["resilience_mw.django"]  # system checks

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
]

RESILIENCE = {
    # Each synchronous view has a thread of its own, and Django sets no limit to them.
    "limit": {"max_concurrent_requests": 40},
    "deadline": {"timeout": 10},
}
