"""Answers addresses without a version, and requests for the head of an answer."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
PREFIX = "/api/v1"
"""What the addresses of the API begin with."""
ONLY_HEAD = "traceweir.only_head"
"""The key of a scope that says that the body is not sent, so that an endless one need not be made."""


def versioned(path: str) -> str:
    """Returns a path with the version of the API, if it is one of the API without a version.

    >>> versioned("/api/overview"), versioned("/api/v1/overview"), versioned("/metrics")
    ('/api/v1/overview', '/api/v1/overview', '/metrics')
    """
    if not path.startswith(API) or path.startswith(f"{PREFIX}/"):
        return path
    return f"{PREFIX}/{path.removeprefix(API)}"


class Unversioned:
    """Takes an address such as `/api/overview` for the address of the present version, `/api/v1/overview`."""

    def __init__(self, app: ASGIApp) -> None:
        """Wraps an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] == "http" and (path := versioned(scope["path"])) != scope["path"]:
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)


class HeadAsGet:
    """Answers HEAD as GET is answered, without the body. FastAPI answers HEAD nowhere by itself."""

    def __init__(self, app: ASGIApp) -> None:
        """Wraps an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        changed: dict[str, Any] = {**scope, "method": "GET", ONLY_HEAD: True}
        await self._app(changed, receive, send_head)
