"""Computes an answer once for all who ask for it while the store is the same, and refuses more work than fits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from traceweir.streams.board.dashboard.access import ASSETS, LOGIN
from traceweir.streams.board.dashboard.api.addresses import PREFIX, versioned
from traceweir.streams.board.dashboard.api.answers import problem_answer
from traceweir.streams.board.dashboard.turns import AnswerTurns, TooManyWaitError

KEPT_S = 10.0
"""Longest time in seconds for which an answer is given again: a span up to now ends when it was computed."""
MAX_KEPT = 200
"""Maximum number of answers that are kept; the oldest is forgotten first."""
MAX_KEPT_BYTES = 1_000_000
"""Largest answer that is kept."""
RETRY_AFTER_S = 2
_SHARED = frozenset(
    {
        *("/", "/metrics", "/metric", "/not-scored", "/dead-letters", "/compare"),
        *(f"{PREFIX}/{name}" for name in ("overview", "metric", "query", "values", "comparison")),
        *(f"{PREFIX}/{name}" for name in ("judge-spending", "not-scored", "dead-letters")),
    }
)
"""The addresses whose answers follow from the store, the address and the time alone."""
_WITHOUT_STORE = frozenset({LOGIN, "/healthz", *(f"{PREFIX}/{name}" for name in ("state", "events", "openapi.json"))})
_READING = ("GET", "HEAD")


@dataclass(frozen=True)
class _Answer:
    messages: list[Message]
    error: Exception | None
    computed_at_s: float

    @property
    def is_worth_keeping(self) -> bool:
        size = sum(len(each.get("body", b"")) for each in self.messages)
        return self.error is None and self.messages[0]["status"] == 200 and size <= MAX_KEPT_BYTES


class SharedAnswers:
    """Wraps the application of the dashboard.

    Args:
        app: Computes answers.
        state: Returns from what answers follow beside their addresses: while it is equal, they are the same.
        turns: Limits how many answers are computed at a time.
        clock: Returns the seconds of a clock that never goes back.
    """

    def __init__(
        self, app: ASGIApp, state: Callable[[], Hashable], turns: AnswerTurns, clock: Callable[[], float] = monotonic
    ) -> None:
        self._app = app
        self._state = state
        self._turns = turns
        self._clock = clock
        self._kept_for: Hashable = None
        self._kept: dict[Hashable, _Answer] = {}
        self._computed: dict[Hashable, asyncio.Task[_Answer]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; one for which there is no room is a 503 that says when to try again."""
        path = versioned(scope.get("path", ""))
        if scope["type"] != "http" or path in _WITHOUT_STORE or path.startswith(ASSETS):
            await self._app(scope, receive, send)
            return
        try:
            if scope["method"] == "GET" and path in _SHARED:
                answer = await self._shared(scope)
            else:
                async with self._turns:
                    await self._app(scope, receive, send)
                # What a request changes need not be in the store.
                if scope["method"] not in _READING:
                    self._kept.clear()
                return
        except TooManyWaitError as error:
            refusal = problem_answer(path, 503, str(error), {"retry-after": str(RETRY_AFTER_S)})
            await refusal(scope, receive, send)
            return
        for message in answer.messages:
            # Those around this change the message that they get.
            await send({**message})
        if answer.error is not None:
            raise answer.error

    async def _shared(self, scope: Scope) -> _Answer:
        state = self._state()
        if state != self._kept_for:
            self._kept.clear()
            self._kept_for = state
        headers = dict(scope["headers"])
        is_compressed = b"gzip" in headers.get(b"accept-encoding", b"")
        key = (scope["path"], scope["query_string"], is_compressed)
        answer = self._kept.get(key)
        if answer is not None and self._clock() - answer.computed_at_s <= KEPT_S:
            return answer
        # An answer in work can be that of a state before.
        task = self._computed.get((key, state))
        if task is None:
            task = asyncio.create_task(self._compute(scope, key, state))
            self._computed[key, state] = task
        # One who leaves does not end what others wait for.
        return await asyncio.shield(task)

    async def _compute(self, scope: Scope, key: Hashable, state: Hashable) -> _Answer:
        messages: list[Message] = []
        error = None

        async def collect(message: Message) -> None:
            messages.append(message)

        try:
            async with self._turns:
                began_at_s = self._clock()
                try:
                    await self._app({**scope}, _no_body, collect)
                except Exception as raised:
                    if not messages:
                        raise
                    # The client has its 500; the server logs the error of each who waited.
                    error = raised
            answer = _Answer(messages, error, began_at_s)
            if self._kept_for == state and answer.is_worth_keeping:
                self._kept.pop(key, None)
                self._kept[key] = answer
                if len(self._kept) > MAX_KEPT:
                    del self._kept[next(iter(self._kept))]
            return answer
        finally:
            del self._computed[key, state]


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
