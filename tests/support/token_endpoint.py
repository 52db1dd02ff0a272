"""A local OAuth 2 token endpoint, which issues the unsecured tokens that Kafka's own test listener accepts."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

CLIENT_ID, CLIENT_SECRET = "traceweir", "correct-token-horse-3b77"
PRINCIPAL = "traceweir-by-token"


@dataclass(frozen=True)
class Request:
    """A request for a token."""

    path: str
    login: str
    """Id and secret as the client sent them: `id:secret`."""
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """What the endpoint answers."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class TokenEndpoint:
    """A running endpoint."""

    url: str
    answer: Callable[[Request], Answer]
    requests: list[Request] = field(default_factory=list)
    """All requests, in order."""


def unsecured_token(lifetime_s: float, principal: str = PRINCIPAL) -> str:
    """Returns a token without a signature (RFC 7515, A.5) that begins now."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": principal, "iat": now, "exp": now + lifetime_s})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def issues(lifetime_s: float) -> Callable[[Request], Answer]:
    """Returns what an endpoint does that gives tokens of this lifetime to the one client that it knows."""

    def answer(request: Request) -> Answer:
        if request.login != f"{CLIENT_ID}:{CLIENT_SECRET}":
            return Answer(json.dumps({"error": "invalid_client", "error_description": request.login}).encode(), 401)
        token = unsecured_token(lifetime_s)
        return Answer(json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": lifetime_s}).encode())

    return answer


@contextmanager
def token_endpoint(answer: Callable[[Request], Answer]) -> Iterator[TokenEndpoint]:
    """Runs an endpoint on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            scheme, _, login = self.headers.get("Authorization", "").partition(" ")
            assert scheme == "Basic"
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            request = Request(self.path, base64.b64decode(login).decode(), dict(parse_qsl(body)))
            endpoint.requests.append(request)
            said = endpoint.answer(request)
            self.send_response(said.status)
            for name, value in {"Content-Length": str(len(said.body)), **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint = TokenEndpoint(f"http://127.0.0.1:{server.server_port}/token", answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
