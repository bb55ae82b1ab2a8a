"""Measurements of how busy, how late and how long waited; nothing here decides.

Every signal is read by somebody who passes `now` (`time.monotonic()` seconds), never raises because
of a platform, a missing symbol or a closed socket, and names the source it fell back to.
The modules are imported one by one: a WSGI process should not pay for an event loop it never runs.

| module | measures |
|---|---|
| `loop` | event-loop utilization, loop turns, start of a turn |
| `lag` | how late a periodic callback ran |
| `tcp` | age of the last data on a connection, depth of an accept queue |
| `waited` | how long a request has waited before the application saw it |
| `threads`, `cores` | busy WSGI threads, process CPU over the cores we may really use |
| `threadpool` | anyio's default thread limiter |
| `running` | which event loop runs in this thread |
"""
