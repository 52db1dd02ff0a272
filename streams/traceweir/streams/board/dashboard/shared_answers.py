"""Computes an answer once at a time for all who ask for it, and refuses more work than fits.

While rows arrive, the store is another one every second. An answer that is quick to compute is always that of the present
store; one that is slow is given again for a while, so that computing it takes a part of the time only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from traceweir.streams.board.dashboard.access import ASSETS, LOGIN, OF_LABELS
from traceweir.streams.board.dashboard.api.addresses import PREFIX, versioned
from traceweir.streams.board.dashboard.api.answers import problem_answer
from traceweir.streams.board.dashboard.turns import AnswerTurns, TooManyWaitError

KEPT_S = 10.0
"""Longest time in seconds for which an answer is given again: a span up to now ends when it was computed."""
PAUSES = 4
"""How often the time that an answer took passes before it is computed again, although rows were stored; at most `KEPT_S`."""
WAIT_S = 0.2
"""Longest time in seconds that one waits for a new answer if there is an earlier one."""
EARLIER_S = 30.0
"""Greatest age in seconds of an earlier answer that is given while a new one is computed."""
MAX_KEPT = 200
"""Maximum number of answers that are kept; the oldest is forgotten first."""
MAX_KEPT_BYTES = 1_000_000
"""Largest answer that is kept."""
MAX_TOGETHER_BYTES = 50_000_000
"""Maximum size of all answers that are kept, with their addresses."""
RETRY_AFTER_S = 2
SHARED = frozenset(
    {
        *("/", "/metrics", "/metric", "/not-scored", "/dead-letters", "/compare", "/trust", "/feedback", "/alerts"),
        *(f"{PREFIX}/{name}" for name in ("overview", "metric", "query", "values", "comparison", "trust")),
        *(f"{PREFIX}/{name}" for name in ("judge-spending", "not-scored", "dead-letters", "alert-slices")),
    }
)
"""The addresses whose answers follow from the store, the address and the time alone."""
_WITHOUT_STORE = frozenset(
    {LOGIN, "/healthz", *(f"{PREFIX}/{name}" for name in ("state", "events", "prometheus", "openapi.json"))}
)
_READING = ("GET", "HEAD")


@dataclass(frozen=True)
class _Answer:
    messages: list[Message]
    error: Exception | None
    state: Hashable
    """The state of the store before it was computed."""
    computed_at_s: float
    """When its computation began."""
    took_s: float
    size_bytes: int
    """Size of the answer and its address."""

    @property
    def is_worth_keeping(self) -> bool:
        return self.error is None and self.messages[0]["status"] == 200 and self.size_bytes <= MAX_KEPT_BYTES


class SharedAnswers:
    """Wraps the application of the dashboard.

    A shared answer is computed without the headers of who asks, so that it cannot depend on them: on a token, a cookie
    or a language. Whether a client may read is decided before.

    Args:
        app: Computes answers.
        state: Returns from what answers follow beside their addresses: while it is equal, they are the same. An answer
            of a former state is given for as long as `PAUSES`, `WAIT_S` and `EARLIER_S` say.
        turns: Limits how many answers are computed at a time.
        clock: Returns the seconds of a clock that never goes back.
        taking: Limits how many labels are taken at a time; None: as many as answers, beside them.
        asked: Is called for each request about what is in the store; those about the health are none.
    """

    def __init__(
        self,
        app: ASGIApp,
        state: Callable[[], Hashable],
        turns: AnswerTurns,
        clock: Callable[[], float] = monotonic,
        taking: AnswerTurns | None = None,
        asked: Callable[[], object] = lambda: None,
    ) -> None:
        self._app = app
        self._state = state
        self._turns = turns
        self._clock = clock
        # A label waits for Kafka, which may be away just when people look at the pages.
        self._taking = taking or AnswerTurns()
        self._asked = asked
        self._changes = 0
        self._kept: dict[Hashable, _Answer] = {}
        self._computed: dict[tuple[Hashable, int], asyncio.Task[_Answer]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request; one for which there is no room is a 503 that says when to try again."""
        path = versioned(scope.get("path", ""))
        if scope["type"] != "http" or path in _WITHOUT_STORE or path.startswith(ASSETS):
            await self._app(scope, receive, send)
            return
        self._asked()
        try:
            if scope["method"] == "GET" and path in SHARED:
                answer = await self._shared(scope)
            elif scope["method"] not in _READING and path in OF_LABELS:
                async with self._taking:
                    await self._app(scope, receive, send)
                return
            else:
                async with self._turns:
                    try:
                        await self._app(scope, receive, send)
                    finally:
                        # What a request changes need not be in the store. An answer in work may not have seen it.
                        if scope["method"] not in _READING:
                            self._changes += 1
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
        key = (scope["path"], scope["query_string"], _is_compressed(scope))
        answer = self._kept.get(key)
        if answer is not None:
            age_s = self._clock() - answer.computed_at_s
            is_present = answer.state == state and age_s <= KEPT_S
            if is_present or age_s < min(PAUSES * answer.took_s, KEPT_S):
                return answer
            if age_s > EARLIER_S:
                answer = None
        # What a request has changed need not be in an answer in work; what was stored meanwhile is in the next one.
        work = (key, self._changes)
        task = self._computed.get(work)
        if task is None:
            task = asyncio.create_task(self._compute(scope, work, state))
            self._computed[work] = task
        # One who leaves does not end what others wait for.
        if answer is None:
            return await asyncio.shield(task)
        await asyncio.wait({task}, timeout=WAIT_S)
        if not task.done():
            # Nobody may wait for it any more, and an error that nobody takes would be logged.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            return answer
        return task.result()

    async def _compute(self, scope: Scope, work: tuple[Hashable, int], state: Hashable) -> _Answer:
        key, changes = work
        messages: list[Message] = []
        error = None

        async def collect(message: Message) -> None:
            messages.append(message)

        try:
            async with self._turns:
                began_at_s = self._clock()
                try:
                    await self._app(_of_nobody(scope), _no_body, collect)
                except Exception as raised:
                    if not messages:
                        raise
                    # The client has its 500; the server logs the error of each who waited.
                    error = raised
            size_bytes = sum(len(each.get("body", b"")) for each in messages) + len(scope["query_string"])
            answer = _Answer(messages, error, state, began_at_s, self._clock() - began_at_s, size_bytes)
            if self._changes == changes and answer.is_worth_keeping:
                self._kept.pop(key, None)
                self._kept[key] = answer
                while len(self._kept) > MAX_KEPT or self._kept_bytes() > MAX_TOGETHER_BYTES:
                    del self._kept[next(iter(self._kept))]
            return answer
        finally:
            del self._computed[work]

    def _kept_bytes(self) -> int:
        return sum(each.size_bytes for each in self._kept.values())


def _is_compressed(scope: Scope) -> bool:
    return any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"])


def _of_nobody(scope: Scope) -> Scope:
    """Returns a request for the same address without anything that tells who asks."""
    headers = [(b"accept-encoding", b"gzip")] if _is_compressed(scope) else []
    return {**scope, "headers": headers, "client": None}


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
