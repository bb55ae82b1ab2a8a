"""The app that the files here deploy: nothing in it knows of them."""

from __future__ import annotations

from fastapi import FastAPI

app = FastAPI()


@app.get("/")
async def hello() -> dict[str, str]:
    """Say hello."""
    return {"message": "hello"}
