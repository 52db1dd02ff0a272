"""Answers questions of criteria from cached verdicts, or from a model within budget, rate limits, retries and breaker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime

from traceweir.schemas.judge_config import JudgeConfig, Retries
from traceweir.schemas.score import Cost
from traceweir.scorers.base import Scorer
from traceweir.scorers.judge import SCORE_ENDS_AT_S, BudgetSpent, JudgeFailed, Question, Room
from traceweir.streams.scoring.judges.answer_watch import NO_ANSWER_S, AnswerWatch
from traceweir.streams.scoring.judges.budget import JudgeBudget, Paid, account_of
from traceweir.streams.scoring.judges.client import Access, Answered, JudgeClient
from traceweir.streams.scoring.judges.errors import FinalFailure, Transient
from traceweir.streams.scoring.judges.fitness import FitnessChecks
from traceweir.streams.scoring.judges.litellm_setup import check_judge
from traceweir.streams.scoring.judges.model_calls import Attempt, CallOptions, ModelCalls
from traceweir.streams.scoring.judges.models import Spent, Use
from traceweir.streams.scoring.judges.rate_limits import Limits
from traceweir.streams.scoring.judges.retrying import Sleep
from traceweir.streams.scoring.judges.running_bill import RunningBill
from traceweir.streams.scoring.judges.session_judge import SessionJudge, WatchQuestion
from traceweir.streams.scoring.judges.verdicts import (
    JudgeVerdict,
    UnusableReply,
    Verdicts,
    VerdictsInMemory,
    verdict_key,
)

CACHED = Cost(cached=True)


class _Bill:
    """What the requests for one question have cost, whatever became of them."""

    def __init__(self) -> None:
        self.total = Spent()


class Judging:
    """Asks judges; one object serves all sessions of a process.

    Args:
        config: The judge section of the evaluation config.
        access: Address and key of the API.
        clock: Returns the current time, for the age of verdicts and for the budget's minutes and days.
        store: Stores verdicts beyond the life of this process.
        note: Called with each payment.
        attempted: Called with each request to a model.
        sleep: Waits this many seconds before a retry.
        unreachable: Retries where no connection could be made to a model that has not answered yet, after which its
            circuit breaker opens; None: those of the config, as for every other failure.
        no_answer_s: Seconds without an answer of a model after which a warning is logged.
        criteria: The scorers whose judges are checked by known cases, as the config says.

    Raises:
        JudgeUnavailableError: the [judge] extra is not installed.
    """

    def __init__(
        self,
        config: JudgeConfig,
        access: Access,
        clock: Callable[[], datetime],
        *,
        store: Verdicts | None = None,
        note: Callable[[Paid], object] = lambda paid: None,
        attempted: Callable[[Attempt], object] = lambda attempt: None,
        sleep: Sleep = asyncio.sleep,
        unreachable: Retries | None = None,
        no_answer_s: float = NO_ANSWER_S,
        criteria: Iterable[Scorer] = (),
    ) -> None:
        check_judge()
        self._config = config
        self._clock = clock
        self._client = JudgeClient(config, access)
        self._memory = VerdictsInMemory(config.cache.max_age_s, config.cache.max_verdicts)
        self._store = store
        self._note = note
        answers = AnswerWatch(access.address, no_answer_s, config.timeout_s)
        self._call_options = CallOptions(config, self._client, Limits(config), answers, attempted, sleep, unreachable)
        self._calls: dict[str, ModelCalls] = {}
        self._running: dict[bytes, asyncio.Future[UnusableReply]] = {}
        self.budget = JudgeBudget(config.budget, clock)
        self.checks: FitnessChecks | None = None
        """The checks by known cases; None: the config asks for none."""
        if config.check != "off":
            self.checks = FitnessChecks(
                config.check, criteria, lambda: SessionJudge(self, (), is_check=True), self.shown_model_of
            )
        self.bill = RunningBill()

    def session(self, known: Sequence[JudgeVerdict] = (), watch: WatchQuestion | None = None) -> SessionJudge:
        """Returns the judge of one session, for which these verdicts are known; `watch` is entered for each question."""
        now = self._now()
        for verdict in known:
            # Another session can have paid for a newer verdict.
            if self._memory.get(verdict.key, now) is None:
                self._memory.put(verdict)
        return SessionJudge(self, known, watch)

    def breakers(self) -> dict[str, bool]:
        """Returns for each model whether its circuit breaker is open; models that were not asked are left out."""
        return {self._client.secrets.hide(model): calls.breaker.is_open for model, calls in self._calls.items()}

    def unfit(self) -> dict[str, dict[str, bool]]:
        """Returns whether a judge is unfit, by criterion and model; judges that were not checked are left out."""
        return self.checks.unfit() if self.checks is not None else {}

    def model_of(self, question: Question) -> str:
        """Returns the name of the model that answers a question."""
        return self._client.name_of(question.model)

    def key_of(self, question: Question) -> bytes:
        """Returns the key that identifies a question among all questions."""
        return verdict_key(question, self.model_of(question), self._config.sampling_of(question.model))

    def shown_model_of(self, question: Question) -> str:
        """Returns the name of the model that answers a question, without secrets."""
        return self._client.secrets.hide(self.model_of(question))

    async def room(self, question: Question) -> Room | None:
        """Returns how much a question takes of the smallest window of its model and the fallback; None: unknown."""
        others = self._config.fallback.get(question.model, ())
        rooms = [
            room
            for model in (question.model, *others)
            if (room := await self._client.room(replace(question, model=model))) is not None
        ]
        return min(rooms, key=lambda room: room.limit - room.tokens, default=None)

    def stored(self, question: Question) -> str | None:
        """Returns the stored verdict on a question; None if the model would have to be asked."""
        verdict = self._cached(self.key_of(question), {})
        return None if verdict is None else verdict.text

    def estimate(self, question: Question) -> Use:
        """Returns what a question is expected to use: its prompt, and an answer of usual length.

        Raises:
            FinalFailure: the provider of the model is unknown.
        """
        return self._client.estimate(question)

    def has_price(self, question: Question) -> bool:
        """Returns whether the price of the question's model is known.

        Raises:
            FinalFailure: the provider of the model is unknown.
        """
        return self._client.has_price(question)

    def alternatives(self, question: Question, known: Mapping[bytes, JudgeVerdict]) -> list[Question]:
        """Returns the question to its model and to each model of the fallback, in the order in which they are asked.

        A verdict that is known already is the only alternative: a replay gives the same scores, whoever is available.
        """
        others = self._config.fallback.get(question.model, ())
        asked = [question, *(replace(question, model=model) for model in others)]
        stored = (each for each in asked if others and self._cached(self.key_of(each), known) is not None)
        first = next(stored, None)
        return asked if first is None else [first]

    async def verdict(
        self, question: Question, known: Mapping[bytes, JudgeVerdict], paid: Callable[[Paid], object]
    ) -> tuple[JudgeVerdict | UnusableReply, Cost]:
        """Returns the verdict on a question and its cost: a cached verdict, or a new answer of the model.

        An answer without a verdict is asked for again, `repairs` times. It is never stored.

        Args:
            question: The question.
            known: Verdicts that the session knows, by key; used even if the cache has evicted them.
            paid: Called with each payment for the question.

        Raises:
            BudgetSpent: the answer could cost more than the rest of the budget.
            JudgeFailed: the model returned no answer.
        """
        key = self.key_of(question)
        while True:
            if (found := self._cached(key, known)) is not None:
                return found, CACHED
            if (running := self._running.get(key)) is None:
                break
            await asyncio.wait(
                {running}
                # Another task asks the same question; if that task is cancelled, this task asks.
            )
            if running.cancelled():
                continue
            if (error := running.exception()) is not None:
                if isinstance(error, BudgetSpent):
                    # The budget of another app or metric can have something left.
                    continue
                # A copy has what the error knows, and a traceback of its own. Who waits has paid nothing.
                again = copy(error)
                if isinstance(again, JudgeFailed):
                    again.cost = Cost()
                raise again
            return running.result(), CACHED
        bill = _Bill()
        ended = self._running[key] = asyncio.get_running_loop().create_future()
        try:
            text, is_usable = await self._ask_until_usable(question, paid, bill)
            if not is_usable:
                # Whoever waits would get the same.
                unusable = UnusableReply(text)
                ended.set_result(unusable)
                return unusable, bill.total.cost
            verdict = JudgeVerdict(key, self._now(), text)
            self._memory.put(verdict)
            if self._store is not None:
                self._store.put(verdict)
        except (BudgetSpent, JudgeFailed) as error:
            ended.set_exception(error)
            # Marks the exception as retrieved, in case no task waits for it.
            ended.exception()
            raise
        finally:
            del self._running[key]
            if not ended.done():
                ended.cancel()
        return verdict, bill.total.cost

    async def _ask_until_usable(
        self, question: Question, paid: Callable[[Paid], object], bill: _Bill
    ) -> tuple[str, bool]:
        """Returns the last answer, and whether it is a verdict; the bill gets what all answers have cost."""
        await self._check_room(question)
        text = (await self._ask_model(question, paid, bill)).text
        for _ in range(self._config.repairs):
            if (problem := question.problem(text)) is None:
                return text, True
            try:
                text = (await self._ask_model(question.repaired(problem), paid, bill)).text
            except (BudgetSpent, JudgeFailed):
                return text, False
        return text, question.problem(text) is None

    async def _check_room(self, question: Question) -> None:
        try:
            room = await self._client.room(question)
        except FinalFailure as error:
            raise JudgeFailed(str(error), error.cause, fails_every_question=error.down) from None
        if room is not None and not room.is_enough:
            raise JudgeFailed(
                f"the question has about {room.tokens} tokens, and {self.shown_model_of(question)} takes {room.limit} "
                "beside the longest answer: ask a model with a larger window, or lower judge.max_output_tokens",
                "too_long",
            )

    def _cached(self, key: bytes, known: Mapping[bytes, JudgeVerdict]) -> JudgeVerdict | None:
        now = self._now()
        if (found := known.get(key)) is not None and now - found.at <= self._config.cache.max_age_s * 1000:
            return found
        if (found := self._memory.get(key, now)) is None and self._store is not None:
            found = self._store.get(key, now)
        return found

    def _now(self) -> int:
        return int(self._clock().timestamp() * 1000)

    async def _ask_model(self, question: Question, paid: Callable[[Paid], object], bill: _Bill) -> Answered:
        def note(taken: Paid) -> None:
            self._note(taken)
            paid(taken)

        accounts = [account_of("metrics", question.asked_for or question.metric)]
        if question.app_name is not None:
            accounts.append(account_of("apps", question.app_name))
        try:
            if self._config.budget.unknown_price == "refuse" and not self._client.has_price(question):
                self.budget.check_price(self._client.secrets.hide(self.model_of(question)), accounts)
            prompt_use, upper_bound = self._client.upper_bounds(question)
            calls = self._calls_of(self.model_of(question))
            async with self.budget.reserve(upper_bound, note, calls.breaker.waiting(), accounts) as reservation:

                def record(spent: Spent) -> None:
                    reservation.record_use(spent.use)
                    bill.total += spent
                    self.bill.add(spent)

                self.bill.add_question(self.shown_model_of(question), has_price=self._client.has_price(question))
                ends_at_s = SCORE_ENDS_AT_S.get()
                return await calls.ask(question, prompt_use, upper_bound.tokens, record, ends_at_s)
        except (Transient, FinalFailure) as error:
            # An answer that cannot be read is an answer, unless the address is wrong.
            is_unavailable = error.down if isinstance(error, FinalFailure) else error.cause != "judge_unparsable"
            raise JudgeFailed(str(error), error.cause, bill.total.cost, fails_every_question=is_unavailable) from None

    def _calls_of(self, model: str) -> ModelCalls:
        if (found := self._calls.get(model)) is None:
            found = self._calls[model] = ModelCalls(model, self._call_options)
        return found
