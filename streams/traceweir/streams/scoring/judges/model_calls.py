"""Asks one model: the retries of a question, the questions in flight, and the circuit breaker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal, NamedTuple

from traceweir.schemas.judge_config import JudgeConfig, Retries
from traceweir.schemas.score import Cause
from traceweir.scorers.judge import Question
from traceweir.streams.scoring.judges.answer_watch import AnswerWatch, AskedQuestion
from traceweir.streams.scoring.judges.circuit_breaker import NO_ATTEMPT, CircuitBreaker
from traceweir.streams.scoring.judges.client import Answered, JudgeClient
from traceweir.streams.scoring.judges.concurrency import AdaptiveConcurrency
from traceweir.streams.scoring.judges.errors import FinalFailure, Transient
from traceweir.streams.scoring.judges.models import Spent, Use
from traceweir.streams.scoring.judges.rate_limits import Limits
from traceweir.streams.scoring.judges.retrying import Sleep, fits, retrying

Outcome = Literal["answered", "unusable", "temporary", "refused", "cancelled"]


class Attempt(NamedTuple):
    """One request to a model, which has ended."""

    model: str
    """litellm's name of the model, without secrets."""
    outcome: Outcome
    """`unusable`: the answer contains no verdict. `temporary`: a later request can succeed. `refused`: the same request
    would fail again."""
    seconds: float
    """From sending it to its end."""
    cause: Cause | None = None
    """What the answer lacked, or why there was none; None if there is a verdict, or the request was cancelled."""


class CallOptions(NamedTuple):
    """What the calls of all models of a process share."""

    config: JudgeConfig
    client: JudgeClient
    limits: Limits
    answers: AnswerWatch
    attempted: Callable[[Attempt], object]
    """Called with each request to a model."""
    sleep: Sleep
    """Waits this many seconds before a retry."""
    unreachable: Retries | None
    """Retries where no connection could be made to a model that has not answered yet; None: the usual ones."""


class ModelCalls:
    """The calls of one model.

    Args:
        model: litellm's name of the model.
        options: What all models share.
    """

    def __init__(self, model: str, options: CallOptions) -> None:
        self._options = options
        self._shown = options.client.secrets.hide(model)
        self._concurrency = AdaptiveConcurrency(options.config.concurrency, options.config.timeout_s)
        self._answers = 0
        self.breaker = CircuitBreaker(options.config.breaker, lambda: asyncio.get_running_loop().time())

    async def ask(
        self,
        question: Question,
        prompt_use: Use,
        tokens: int,
        record: Callable[[Spent], object],
        ends_at_s: float | None,
    ) -> Answered:
        """Returns the answer of the first attempt that succeeds.

        The first attempt begins whenever the model has a place for it; a further one only if it ends in time.

        Args:
            question: The question.
            prompt_use: What the prompt alone costs.
            tokens: Upper bound of the tokens of an attempt.
            record: Called with what each attempt has used.
            ends_at_s: Time of the event loop at which the last attempt must have ended; None: no such time.

        Raises:
            Transient: the last attempt failed as the others did.
            FinalFailure: a further attempt would fail too.
        """
        options = self._options
        # A model that has answered has the right address: no connection is an outage, which passes.
        unreachable = None if self._answers else options.unreachable
        retries = options.config.retries
        attempt_s = options.config.timeout_s
        failed: Transient | None = None
        with options.answers.question(self._shown, question.metric) as asked:
            try:
                async for attempt in retrying(retries, unreachable, options.sleep, attempt_s, ends_at_s):
                    with attempt:
                        try:
                            async with self._place(tokens):
                                # The wait for the place takes time too.
                                if failed is not None and not fits(attempt_s, ends_at_s):
                                    raise failed
                                answered = await self._send(question, prompt_use, record, asked)
                        except Transient as error:
                            failed = error
                            raise
            except Transient as error:
                # The provider was busy at every attempt.
                if not error.down:
                    self.breaker.failed(str(error), NO_ATTEMPT)
                if error.unreachable and unreachable is not None:
                    self.breaker.open()
                asked.given_up()
                raise
        return answered

    @asynccontextmanager
    async def _place(self, tokens: int) -> AsyncIterator[None]:
        """Waits for a place among the questions in flight, and holds it during the block."""
        limits = self._options.limits
        async with self.breaker.waiting():
            await self._concurrency.acquire()
            try:
                await limits.wait(tokens)
                await limits.slots.acquire()
            except BaseException:
                self._concurrency.release()
                raise
        try:
            await limits.start()
            yield
        finally:
            limits.slots.release()
            self._concurrency.release()

    async def _send(
        self, question: Question, prompt_use: Use, record: Callable[[Spent], object], asked: AskedQuestion
    ) -> Answered:
        prompt = Spent(prompt_use.tokens, 0, prompt_use.usd)
        attempt = self.breaker.enter()
        asked.sent()
        overloads_when_sent = self._concurrency.overloads
        answers_when_sent = self._answers
        outcome: Outcome = "cancelled"
        cause: Cause | None = None
        now = asyncio.get_running_loop().time
        began = now()
        try:
            answered = await self._options.client.ask(question)
            is_verdict = question.problem(answered.text) is None
            outcome = "answered" if is_verdict else "unusable"
            cause = None if is_verdict else "judge_unparsable"
        except Transient as error:
            outcome = "temporary"
            cause = error.cause
            asked.failed(str(error))
            if error.unknown:
                record(prompt)
            if error.overloaded:
                self._concurrency.overloaded(overloads_when_sent)
            # A model that answered others meanwhile is slow, not down.
            is_slow = error.overloaded and self._answers > answers_when_sent
            if error.down and not is_slow:
                self.breaker.failed(str(error), attempt)
            else:
                self.breaker.abandoned(attempt)
            raise
        except FinalFailure as error:
            outcome = "refused"
            cause = error.cause
            if error.used is not None:
                record(error.used)
            elif error.unknown:
                record(prompt)
            if error.down:
                self.breaker.refused(str(error), attempt)
                if error.spent:
                    self.breaker.open()
                asked.failed(str(error))
                asked.given_up()
            else:
                self._succeeded(asked, now() - began, attempt)
            raise
        except BaseException:
            # Cancelled: the question was sent and will be charged.
            self.breaker.abandoned(attempt)
            record(prompt)
            raise
        finally:
            self._options.attempted(Attempt(self._shown, outcome, now() - began, cause))
        self._succeeded(asked, now() - began, attempt)
        self._answers += 1
        record(answered.spent)
        return answered

    def _succeeded(self, asked: AskedQuestion, seconds: float, attempt: int) -> None:
        self.breaker.succeeded(attempt)
        self._concurrency.answered(seconds)
        asked.answered()
