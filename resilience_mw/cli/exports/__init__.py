"""What `resilience-mw export` can write, one module each: its name, its `command` the code."""
