"""Lets only those in who may read: clients with the token, or clients of this machine that name this machine."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

COOKIE = "traceweir_dashboard"
LOGIN = "/login"
ASSETS = "/assets/"
"""Style, scripts and fonts of the page; they are the same for everyone, and the login page needs them."""
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    b"base-uri 'none'; frame-ancestors 'none'"
)
_POLICY_VIOLATION = 1008
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", _POLICY),
]


def guarded(application: Application, token: str | None) -> Application:
    """Returns an ASGI application that answers 401 without the token, and no one else's pages.

    Without a token, a request must name this machine as its host. Otherwise a page of another site could read the
    answers, by a name of its own that it lets point to this machine (DNS rebinding). A request that changes something
    must come from a page of the dashboard itself.

    Args:
        application: Answers the requests that may pass. `scope["traceweir.refused"]` marks a request of a page without
            the token, which it answers with the login page; it is the address of the page, to which the login leads.
        token: The token that a client sends as `Authorization: Bearer`, or as the cookie that the login sets; None lets
            every client of this machine pass.
    """

    async def guard(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await application(scope, receive, send)
            return
        if scope["type"] != "http":
            # Nothing is answered there.
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                cached = any(name == b"cache-control" for name, _ in message.get("headers", ()))
                added = _HEADERS if cached else [*_HEADERS, (b"cache-control", b"no-store")]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        headers = dict(scope["headers"])
        if token is None and not _is_local(headers.get(b"host", b"")):
            await _refuse(send_with_headers, 421, [])
        elif scope["method"] not in _SAFE_METHODS and not _is_from_here(headers):
            await _refuse(send_with_headers, 403, [])
        elif token is None or _has(headers, token) or scope["path"].startswith(ASSETS) or scope["path"] == LOGIN:
            await application(scope, receive, send_with_headers)
        elif b"text/html" in headers.get(b"accept", b""):
            await application(
                {**scope, "path": LOGIN, "traceweir.refused": _address(scope)}, receive, send_with_headers
            )
        else:
            await _refuse(send_with_headers, 401, [(b"www-authenticate", b"Bearer")])

    return guard


def cookie_value(token: str) -> str:
    """Returns what the cookie of the login contains. The token cannot be computed from it.

    >>> cookie_value("a-token-of-20-letters") == cookie_value("a-token-of-20-letterS")
    False
    """
    return hmac.new(token.encode(), b"traceweir dashboard cookie", hashlib.sha256).hexdigest()


def is_token(given: str, token: str) -> bool:
    """Returns whether a text is the token, in a time that does not depend on how much of it is right."""
    return hmac.compare_digest(given.encode(), token.encode())


def _address(scope: Message) -> str:
    """Returns the address of a page that a request wants; that of the overview if it wants to change something."""
    if scope["method"] not in _SAFE_METHODS:
        return "/"
    query = scope.get("query_string", b"").decode("latin-1")
    return quote(scope["path"]) + (f"?{query}" if query else "")


def _has(headers: dict[bytes, bytes], token: str) -> bool:
    given = headers.get(b"authorization", b"")
    scheme, _, credentials = given.partition(b" ")
    if scheme.lower() == b"bearer":
        return hmac.compare_digest(credentials.strip(), token.encode())
    try:
        cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return False
    morsel = cookies.get(COOKIE)
    return morsel is not None and hmac.compare_digest(morsel.value.encode(), cookie_value(token).encode())


def _is_from_here(headers: dict[bytes, bytes]) -> bool:
    """Returns whether a request comes from a page of the same host, or from no page, as that of a program."""
    site = headers.get(b"sec-fetch-site")
    origin = headers.get(b"origin")
    if site is not None and site not in (b"same-origin", b"none"):
        return False
    return origin is None or urlsplit(origin.decode("latin-1")).netloc == headers.get(b"host", b"").decode("latin-1")


def _is_local(host: bytes) -> bool:
    name, colon, port = host.decode("latin-1").rpartition(":")
    # Without a port.
    if not colon or not port.isdigit():
        name = host.decode("latin-1")
    if name == "localhost":
        return True
    try:
        # An address is no name that another site could let point to this machine.
        return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


async def _refuse(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *headers]})
    await send({"type": "http.response.body", "body": b""})
