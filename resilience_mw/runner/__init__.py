"""Adapters that map the options to a server, and add to it what it lacks.

`wrap` puts an app that nobody has protected yet behind `protect()`; `drain` is the timetable of a
stop and what is said about it; `uvicorn` and `gunicorn` are the servers.
"""
