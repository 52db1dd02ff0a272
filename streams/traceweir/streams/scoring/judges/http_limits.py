"""Limits the HTTP answers of providers: no redirect, no answer above a size, and none that is no answer of an API.

litellm has a client for each provider and no setting for either limit. All these clients send through httpx.
`install_http_limits` therefore wraps the `send` of httpx's clients; outside of `limited_http` the wrapper changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from traceweir.schemas.text import printable
from traceweir.streams.scoring.judges.http_answers import NotAnAnswerError, check_answer, readable_answer

if TYPE_CHECKING:
    import httpx

MAX_ANSWER_BYTES = 1_000_000
"""Maximum size of an answer's body. The largest answer of a judge, with the default limit of tokens, has about 20 kB."""
_SHOWN_HOST_CHARS = 100
_SHOWN_PROBLEM_CHARS = 200
_OF_THE_BODY = ("content-length", "content-type")
"""Headers that say nothing true about another body: it is UTF-8."""
_CREDENTIALS = re.compile(r"authorization|api-?key|^key$", re.IGNORECASE)
"""Names of the headers and parameters of a request that hold the key of a provider."""


class HttpExchange:
    """The last answer of a provider within `limited_http`."""

    def __init__(self) -> None:
        self.headers: Mapping[str, str] | None = None
        """The headers; None if there was no answer."""
        self.body = b""
        self.is_sent = False
        """Whether a question was sent, also if nothing answered."""
        self.is_authorized = False
        """Whether the last question had a key or a signature."""

    def note(self, request: httpx.Request) -> None:
        """Notes a request that is sent now; litellm also gets the settings of some models, which is no question."""
        if request.method != "POST":
            return
        self.is_sent = True
        self.is_authorized = any(_CREDENTIALS.search(name) for name in (*request.headers, *request.url.params))


_exchange: ContextVar[HttpExchange | None] = ContextVar("judge_http_exchange", default=None)


class RedirectError(Exception):
    """The provider redirected the request; the request was not sent to the other address."""


class AnswerTooLargeError(Exception):
    """The answer cannot be bounded by `MAX_ANSWER_BYTES`; the rest of the answer was not read."""


LimitError = RedirectError | AnswerTooLargeError | NotAnAnswerError


@contextmanager
def limited_http() -> Iterator[HttpExchange]:
    """Limits the HTTP answers to this task, and to the tasks and threads that it starts, while the block runs.

    Every httpx client then raises a LimitError, which litellm wraps in errors of its own; `limit_error` finds it.
    """
    exchange = HttpExchange()
    token = _exchange.set(exchange)
    try:
        yield exchange
    finally:
        _exchange.reset(token)


def limit_error(error: BaseException) -> LimitError | None:
    """Returns the error of a limit that caused an error; None if another cause did."""
    return next((each for each in causes(error) if isinstance(each, LimitError)), None)


def connection_problem(error: BaseException) -> str | None:
    """Returns why no connection to the provider could be made; None if there was one, or another cause."""
    import httpx

    all_causes = list(causes(error))
    if not any(isinstance(each, httpx.ConnectError) for each in all_causes):
        return None
    system = [each for each in all_causes if isinstance(each, OSError)]
    if any(isinstance(each, ConnectionRefusedError) for each in system):
        return "the connection was refused"
    return printable(str(system[-1].strerror or system[-1]) if system else str(all_causes[-1]), _SHOWN_PROBLEM_CHARS)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error, and the errors that have caused it."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        yield each
        seen.add(id(each))
        each = each.__cause__ or each.__context__


@cache
def install_http_limits() -> None:
    """Wraps the `send` of httpx's clients, once per process."""
    import httpx

    httpx.AsyncClient.send = _limited_async(httpx.AsyncClient.send)  # type: ignore[method-assign]
    httpx.Client.send = _limited(httpx.Client.send)  # type: ignore[method-assign]


def _limited_async(send: Callable[..., Awaitable[httpx.Response]]) -> Callable[..., Any]:
    import httpx

    class LimitedStream(httpx.AsyncByteStream):
        def __init__(self, stream: httpx.AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._stream:
                size += len(chunk)
                _check_size(size)
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()

    @wraps(send)
    async def limited(
        client: httpx.AsyncClient, request: httpx.Request, *, stream: bool = False, **options: Any
    ) -> httpx.Response:
        if (exchange := _exchange.get()) is None:
            return await send(client, request, stream=stream, **options)
        exchange.note(request)
        # A small compressed answer can decompress to gigabytes.
        request.headers["Accept-Encoding"] = "identity"
        response = await send(client, request, stream=True, **{**options, "follow_redirects": False})
        try:
            _check_head(response)
            if isinstance(response.stream, httpx.AsyncByteStream):
                response.stream = LimitedStream(response.stream)
            if not stream:
                await response.aread()
                return _read(response, exchange)
        except BaseException:
            await response.aclose()
            raise
        return response

    return limited


def _limited(send: Callable[..., httpx.Response]) -> Callable[..., Any]:
    import httpx

    class LimitedStream(httpx.SyncByteStream):
        def __init__(self, stream: httpx.SyncByteStream) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for chunk in self._stream:
                size += len(chunk)
                _check_size(size)
                yield chunk

        def close(self) -> None:
            self._stream.close()

    @wraps(send)
    def limited(
        client: httpx.Client, request: httpx.Request, *, stream: bool = False, **options: Any
    ) -> httpx.Response:
        if (exchange := _exchange.get()) is None:
            return send(client, request, stream=stream, **options)
        exchange.note(request)
        request.headers["Accept-Encoding"] = "identity"
        response = send(client, request, stream=True, **{**options, "follow_redirects": False})
        try:
            _check_head(response)
            if isinstance(response.stream, httpx.SyncByteStream):
                response.stream = LimitedStream(response.stream)
            if not stream:
                response.read()
                return _read(response, exchange)
        except BaseException:
            response.close()
            raise
        return response

    return limited


def _read(response: httpx.Response, exchange: HttpExchange) -> httpx.Response:
    """Returns an answer whose body was read, as litellm can read it."""
    import httpx

    exchange.headers = response.headers
    exchange.body = response.content
    check_answer(response)
    if (readable := readable_answer(response)) is None:
        return response
    headers = {name: value for name, value in response.headers.items() if name not in _OF_THE_BODY}
    return httpx.Response(readable.status, headers=headers, content=readable.body, request=response.request)


def _check_head(response: httpx.Response) -> None:
    """Checks the status and the headers of an answer before its body is read."""
    if 300 <= response.status_code < 400:
        target = response.next_request
        host = printable(target.url.host, _SHOWN_HOST_CHARS) if target is not None else "an unnamed address"
        raise RedirectError(
            f"{response.request.url.host} redirects to {host} (HTTP {response.status_code}), and redirects are not followed, "
            "because they would send the API key to another address: set TRACEWEIR_JUDGE_API_BASE to the final address"
        )
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise AnswerTooLargeError(
            f"{response.request.url.host} sent a compressed answer ({printable(encoding, 20)}), although the request accepts "
            "uncompressed answers only, so that its size has a limit: switch compression off in the server or proxy"
        )
    length = response.headers.get("content-length", "")
    if length.isdecimal():
        _check_size(int(length[:20]))


def _check_size(size: int) -> None:
    if size > MAX_ANSWER_BYTES:
        raise AnswerTooLargeError(
            f"the answer has more than {MAX_ANSWER_BYTES:,} bytes, the limit for an answer of a judge; its rest was not read"
        )
