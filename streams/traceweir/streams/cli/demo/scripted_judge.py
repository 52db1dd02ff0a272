"""A judge that follows a script: a server on the loopback address with OpenAI's API, for the demo.

It finds a session incomplete whose last answer evades the question, and it is down for the sessions of some minutes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

from traceweir.streams.cli.demo.story import OUTAGE_REF
from traceweir.streams.cli.demo.texts import domains

_MAX_BYTES = 1 << 20
_FAILING = ("no", "unresolved")
_PASSING = ("yes", "none")


@contextmanager
def scripted_judge() -> Iterator[str]:
    """Runs the judge in a thread of this process, and yields its base URL."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Writes nothing: a worker that ends leaves its connections, which is no error of the demo."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        """Answers a question."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MAX_BYTES:
            self.close_connection = True
            self._send(400, {"error": {"message": f"a question has a length of at most {_MAX_BYTES} bytes"}})
            return
        try:
            asked = orjson.loads(self.rfile.read(int(length)))
            session = str(asked["messages"][-1]["content"])
            schema = asked["response_format"]["json_schema"]["schema"]
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
            self._send(400, {"error": {"message": "not a question with an answer in a schema"}})
            return
        if f"{OUTAGE_REF}-" in session:
            self._send(503, {"error": {"message": "the judge is down, as the story of the demo says"}})
            return
        answer = orjson.dumps(answer_of(schema, passes=domains()[-1].evasion not in session)).decode()
        self._send(200, _completion(asked, answer))

    def _send(self, status: int, document: dict[str, Any]) -> None:
        body = orjson.dumps(document)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name of the base class
        """Writes nothing."""


def answer_of(schema: Any, *, passes: bool) -> Any:
    """Returns an answer of this schema: the words that pass or fail, the simplest value otherwise.

    >>> word = {"type": "string", "enum": ["yes", "no"]}
    >>> answer_of({"type": "object", "properties": {"turns": {"type": "array"}, "complete": word}}, passes=False)
    {'turns': [], 'complete': 'no'}
    """
    if isinstance(properties := schema.get("properties"), dict):
        return {name: answer_of(part, passes=passes) for name, part in properties.items()}
    if isinstance(words := schema.get("enum"), list):
        wanted = _PASSING if passes else _FAILING
        return next((word for word in words if word in wanted), words[0])
    simplest = {"array": [], "integer": 1, "number": 1.0, "boolean": passes}
    said = "The answer does what the user asked for." if passes else "The agent sends the user elsewhere."
    return simplest.get(schema.get("type"), said)


def _completion(asked: dict[str, Any], answer: str) -> dict[str, Any]:
    prompt = len(orjson.dumps(asked["messages"])) // 4
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
    usage = {"prompt_tokens": prompt, "completion_tokens": len(answer) // 4}
    return {
        "id": "demo",
        "object": "chat.completion",
        "created": 1,
        "model": asked["model"],
        "choices": [choice],
        "usage": usage | {"total_tokens": sum(usage.values())},
    }
