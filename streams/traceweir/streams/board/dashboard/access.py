"""Lets only those in who may read: clients with the token, or clients of this machine that name this machine."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import orjson

from traceweir.schemas.normal_form import normal_form
from traceweir.streams.base.setting_groups.header_token import is_header_token

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

Right = Literal["feedback", "read", "label", "admin"]
"""What a client may do: `feedback` only sends feedback, `read` only reads answers and pages, `label` does both, labels and
adds eval cases, `admin` does everything."""

COOKIE = "traceweir_dashboard"
LOGIN = "/login"
TOKENS = "traceweir.tokens"
"""The key of a scope under which a guard leaves the tokens of all clients."""
ASSETS = "/assets/"
"""Style, scripts and fonts of the page; they are the same for everyone, and the login page needs them."""
_RIGHTS: tuple[Right, ...] = ("feedback", "read", "label", "admin")
_INCLUDED: Mapping[Right, frozenset[Right]] = {
    "feedback": frozenset(("feedback",)),
    "read": frozenset(("read",)),
    "label": frozenset(("feedback", "read", "label")),
    "admin": frozenset(_RIGHTS),
}
LOCAL_CLIENT = "this machine"
"""The name of a client that needs no token."""
BUILT_IN_NAMES = frozenset((LOCAL_CLIENT, *(f"{right} token" for right in _RIGHTS)))
"""The names of clients that nobody chooses: of those without a token, and of those with the token of a right."""
FOR_FEEDBACK = ("/api/feedback", "/api/v1/feedback")
"""The addresses that a client with the right `feedback` can send to."""
FOR_LABEL = (
    "/api/labels",
    "/api/v1/labels",
    "/api/case",
    "/api/v1/case",
    "/review/label",
    "/review/withdraw",
    "/session/case",
    "/sessions/selection",
    "/views",
    "/views/remove",
)
"""The addresses that a client with the right `label` can send to; others need `admin`."""
LARGEST_LABEL_BYTES = 65_536
"""The largest request with a label or with feedback."""
OF_LABELS = ("/api/labels", "/api/v1/labels", "/review/label", "/review/withdraw", *FOR_FEEDBACK)
"""The addresses that take labels and feedback; both go to Kafka, and change nothing that the dashboard shows."""
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


@dataclass(frozen=True)
class KnownClient:
    """A client that has a token."""

    name: str
    """Its name, which is the annotator of its labels."""
    right: Right
    digest: str = field(repr=False)
    """The SHA-256 of its token, as `digest_of` returns it."""
    cookie: str = field(default_factory=secrets.token_hex, repr=False)
    """What its cookie contains; random by default, because who reads a digest must not be able to make the cookie."""


@dataclass(frozen=True)
class Tokens:
    """The secrets of clients, one for each right, and clients with a name; None: no client has this right by a token."""

    admin: str | None = None
    label: str | None = None
    read: str | None = None
    feedback: str | None = None
    named: tuple[KnownClient, ...] = field(default=(), kw_only=True)
    """Clients with a token and a name of their own."""

    def __bool__(self) -> bool:
        """Whether there is a token; without one, every client of this machine may do everything."""
        return bool(self.clients)

    @cached_property
    def clients(self) -> tuple[KnownClient, ...]:
        """Every client that has a token; the token of a right gives its name to the client."""
        given: dict[Right, str | None] = {
            "feedback": self.feedback,
            "read": self.read,
            "label": self.label,
            "admin": self.admin,
        }
        of_rights = (
            KnownClient(f"{right} token", right, digest_of(token), cookie_value(token))
            for right, token in given.items()
            if token is not None
        )
        return (*of_rights, *self.named)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that a client has by its token or without one, and that no other client can declare."""
        return BUILT_IN_NAMES.union(each.name for each in self.named)


def guarded(application: Application, tokens: Tokens) -> Application:
    """Returns an ASGI application that answers 401 without a token, 403 without the right, and no one else's pages.

    Without a token, a request must name this machine as its host. Otherwise a page of another site could read the
    answers, by a name of its own that it lets point to this machine (DNS rebinding). A request that changes something
    must come from a page of the dashboard itself.

    Args:
        application: Answers the requests that may pass. `scope["traceweir.refused"]` marks a request of a page without
            the token, which it answers with the login page; it is the address of the page, to which the login leads.
        tokens: A client sends one as `Authorization: Bearer`, or as the cookie that the login sets; without one, every
            client of this machine passes.
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
        path = scope["path"]
        needed = _needed(scope["method"], path)
        client = _client_of(headers, tokens)
        right: Right | None = client.right if client is not None else None
        if not tokens:
            right = "admin"
        if not tokens and not _is_local(headers.get(b"host", b"")):
            sentence = "without a token, only this machine is answered, under the name localhost or its address"
            await _refuse(send_with_headers, 421, sentence)
        elif scope["method"] not in _SAFE_METHODS and not _is_from_here(headers):
            await _refuse(send_with_headers, 403, "a page of another site cannot change anything here")
        elif path in OF_LABELS and scope["method"] not in _SAFE_METHODS and _is_large(headers):
            sentence = (
                f"a label has at most {LARGEST_LABEL_BYTES} bytes, as the header Content-Length says: shorten its note"
            )
            await _refuse(send_with_headers, 413, sentence)
        elif path.startswith(ASSETS) or path == LOGIN or _includes(right, needed):
            # Who labels is the name of the token.
            known = {"traceweir.client": client, TOKENS: tokens}
            await application({**scope, **known}, receive, send_with_headers)
        elif right is not None:
            sentence = f"the token has the right {right!r}, and this needs {needed!r}: send another token"
            await _refuse(send_with_headers, 403, sentence)
        elif b"text/html" in headers.get(b"accept", b""):
            await application(
                {**scope, "path": LOGIN, "traceweir.refused": _address(scope), TOKENS: tokens},
                receive,
                send_with_headers,
            )
        else:
            sentence = "the token is missing or wrong: send it as the header `Authorization: Bearer TOKEN`"
            await _refuse(send_with_headers, 401, sentence, [(b"www-authenticate", b"Bearer")])

    return guard


def as_read(name: str) -> str:
    """Returns a name as a person reads it: without regard to case, width, and spaces around and between its words.

    >>> as_read(" Admin  token")
    'admin token'
    """
    return " ".join(normal_form("NFKC", name).split()).casefold()


def digest_of(token: str) -> str:
    """Returns the SHA-256 of a token, as 64 small hexadecimal digits.

    >>> digest_of("a-token-of-20-letters")[:8]
    '6b3e1bf7'
    """
    return hashlib.sha256(token.encode()).hexdigest()


def cookie_value(token: str) -> str:
    """Returns what the cookie of the login contains. The token cannot be computed from it.

    >>> cookie_value("a-token-of-20-letters") == cookie_value("a-token-of-20-letterS")
    False
    """
    return hmac.new(token.encode(), b"traceweir dashboard cookie", hashlib.sha256).hexdigest()


def is_for_programs(path: str) -> bool:
    """Returns whether programs ask this address, so that a problem is answered as JSON and not as a page."""
    return path.startswith("/api/") or path == "/healthz"


def _address(scope: Message) -> str:
    """Returns the address of a page that a request wants; that of the overview if it wants to change something."""
    if scope["method"] not in _SAFE_METHODS:
        return "/"
    query = scope.get("query_string", b"").decode("latin-1")
    return quote(scope["path"]) + (f"?{query}" if query else "")


def client_of_token(given: bytes, tokens: Tokens) -> KnownClient | None:
    """Returns the client whose token this is, in a time that does not depend on how much of it is right; None: nobody's."""
    # A digest does not say whether its token is easy to guess, or empty.
    if not is_header_token(given.decode("latin-1")):
        return None
    digest = hashlib.sha256(given).hexdigest()
    found = None
    for client in tokens.clients:
        if hmac.compare_digest(digest, client.digest):
            found = client
    return found


def _needed(method: str, path: str) -> Right:
    if method in _SAFE_METHODS:
        return "read"
    if path in FOR_FEEDBACK:
        return "feedback"
    return "label" if path in FOR_LABEL else "admin"


def _includes(right: Right | None, needed: Right) -> bool:
    return right is not None and needed in _INCLUDED[right]


def _is_large(headers: dict[bytes, bytes]) -> bool:
    """Returns whether a request has a body that is too large for a label, or does not say how large it is."""
    given = headers.get(b"content-length", b"0")
    # Python refuses to read a number of thousands of digits.
    digits = given.lstrip(b"0")[:20]
    return b"transfer-encoding" in headers or not given.isdigit() or int(digits or b"0") > LARGEST_LABEL_BYTES


def _client_of(headers: dict[bytes, bytes], tokens: Tokens) -> KnownClient | None:
    """Returns the client that a request's token or cookie names; None: it has sent none that is right."""
    given = headers.get(b"authorization", b"")
    scheme, _, credentials = given.partition(b" ")
    if scheme.lower() == b"bearer":
        return client_of_token(credentials.strip(), tokens)
    sent = _cookie_of(headers)
    found = None
    for client in tokens.clients:
        if hmac.compare_digest(sent, client.cookie.encode()):
            found = client
    return found


def _cookie_of(headers: dict[bytes, bytes]) -> bytes:
    try:
        cookies = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return b""
    morsel = cookies.get(COOKIE)
    return morsel.value.encode() if morsel is not None else b""


def _is_from_here(headers: dict[bytes, bytes]) -> bool:
    """Returns whether a request comes from a page of the same host, or from no page, as that of a program."""
    site = headers.get(b"sec-fetch-site")
    origin = headers.get(b"origin")
    if site is not None and site not in (b"same-origin", b"none"):
        return False
    host = headers.get(b"host", b"").decode("latin-1")
    try:
        return origin is None or urlsplit(origin.decode("latin-1")).netloc == host
    except ValueError:
        # It is no address.
        return False


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


async def _refuse(send: Send, status: int, sentence: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    body = orjson.dumps({"detail": sentence})
    about = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})
