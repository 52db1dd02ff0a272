"""Answers questions of criteria from cached verdicts, or from a model within budget, rate limits, retries and breaker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from traceweir.schemas.judge_config import JudgeConfig, Retries
from traceweir.schemas.score import Cost
from traceweir.scorers.base import Scorer
from traceweir.scorers.judge import SCORE_ENDS_AT_S, BudgetSpent, Judge, JudgeFailed, Question, Reply, Room
from traceweir.scorers.judged.vote import total_cost
from traceweir.streams.scoring.judges.answer_watch import NO_ANSWER_S, AnswerWatch
from traceweir.streams.scoring.judges.budget import ALL_JUDGES, JudgeBudget, Paid, account_of
from traceweir.streams.scoring.judges.client import Access, Answered, JudgeClient, check_judge
from traceweir.streams.scoring.judges.errors import FinalFailure, Transient
from traceweir.streams.scoring.judges.fitness import FitnessCheck, FitnessChecks
from traceweir.streams.scoring.judges.model_calls import Attempt, CallOptions, ModelCalls
from traceweir.streams.scoring.judges.models import Spent, Use
from traceweir.streams.scoring.judges.rate_limits import Limits
from traceweir.streams.scoring.judges.retrying import Sleep
from traceweir.streams.scoring.judges.running_bill import RunningBill
from traceweir.streams.scoring.judges.verdicts import JudgeUsage, JudgeVerdict, Verdicts, VerdictsInMemory, verdict_key

WatchQuestion = Callable[[str], AbstractContextManager[Callable[[Cost], object]]]
"""Watches a question: receives the model, is entered until there is an answer, and then receives its cost."""
CACHED = Cost(cached=True)


class _Bill:
    """What the requests for one question have cost, whatever became of them."""

    def __init__(self) -> None:
        self.total = Spent()


class UnusableReply(NamedTuple):
    """An answer without a verdict."""

    text: str


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


class SessionJudge(Judge):
    """The judge that the scorers of one session use; collects the session's new verdicts and payments."""

    def __init__(
        self,
        judging: Judging,
        known: Sequence[JudgeVerdict],
        watch: WatchQuestion | None = None,
        *,
        is_check: bool = False,
    ) -> None:
        self._judging = judging
        self._is_check = is_check
        self._checks = None if is_check else judging.checks
        self._started: list[FitnessCheck] = []
        self._watch = watch
        self._known = {verdict.key: verdict for verdict in known}
        self._learned: dict[bytes, JudgeVerdict] = {}
        self._paid: list[Paid] = []
        self.failed = False
        """Whether a question got no verdict. If every question got one, asking again would return the stored replies."""

    @property
    def judged(self) -> JudgeUsage:
        """The new verdicts and the payments of the session so far, with those of checks that it has waited for."""
        known_cases: dict[bytes, JudgeVerdict] = {}
        for check in self._started:
            taken = check.taken()
            self._paid += taken.paid
            # Each partition stores them, so that a worker that starts with any of them need not ask.
            known_cases |= {each.key: each for each in taken.verdicts if each.key not in self._known}
        return JudgeUsage(list(self._learned.values()), self._paid, list(known_cases.values()))

    async def settle(self, timeout_s: float | None) -> None:
        """Waits for the checks that questions of the session have started, at most some seconds; None: to their ends."""
        running = [check.ended for check in self._started if not check.ended.done()]
        if running:
            await asyncio.wait(running, timeout=timeout_s)

    def _note_check(self, check: FitnessCheck) -> None:
        if check not in self._started:
            self._started.append(check)

    async def ask(self, question: Question) -> Reply:
        """Returns the reply to a question, from a known verdict or from the model.

        Raises:
            BudgetSpent: the answer could cost more than the rest of the budget.
            JudgeFailed: the model returned no answer.
        """
        failures: list[JudgeFailed] = []
        billed = Cost()
        # A check is about one model.
        asked = [question] if self._is_check else self._judging.alternatives(question, self._known)
        try:
            while True:
                each = asked[len(failures)]
                paid: list[Paid] = []
                try:
                    async with _share_of_time(len(asked) - len(failures), self._judging.shown_model_of(each), paid):
                        reply = await self._ask(each, paid)
                        # What the models before it have cost belongs to the score too.
                        return reply if billed == Cost() else replace(reply, cost=total_cost([billed, reply.cost]))
                except BudgetSpent:
                    if billed == Cost():
                        raise
                    raise JudgeFailed("; then ".join(map(str, failures)), failures[0].cause, billed) from None
                except JudgeFailed as error:
                    failures.append(error)
                    billed = total_cost([billed, error.cost]) if error.cost != Cost() else billed
                    if error.fails_every_question and len(failures) < len(asked):
                        continue
                    if len(failures) == 1:
                        raise
                    raise JudgeFailed("; then ".join(map(str, failures)), error.cause, billed) from None
        except BaseException:
            # Also a timeout of the scorer, which cancels the question.
            self.failed = True
            raise

    async def room(self, question: Question) -> Room | None:
        """Returns how much of the window the question takes; None if the window or the model is unknown."""
        try:
            return await self._judging.room(question)
        except FinalFailure:
            # The question fails with the reason.
            return None

    async def _ask(self, question: Question, paid: list[Paid]) -> Reply:
        def note_payment(payment: Paid) -> None:
            self._paid.append(payment)
            paid.append(payment)

        if self._checks is not None:
            await self._checks.before(question, self._note_check)
        if self._watch is None:
            verdict, cost = await self._judging.verdict(question, self._known, note_payment)
        else:
            with self._watch(self._judging.model_of(question)) as note:
                verdict, cost = await self._judging.verdict(question, self._known, note_payment)
                note(cost)
        if isinstance(verdict, UnusableReply):
            self.failed = True
        elif verdict != self._known.get(verdict.key):
            self._learned[verdict.key] = verdict
        return Reply(text=verdict.text, cost=cost, model=self._judging.shown_model_of(question))


@asynccontextmanager
async def _share_of_time(models: int, model: str, paid: Sequence[Paid]) -> AsyncIterator[None]:
    """Gives the block an equal part of the time of the score, of those of all models that can still be asked.

    The last model has the rest, which the score itself limits. The part includes the wait for a place.

    Args:
        models: Number of models that can still be asked, the next one included.
        model: The name of the model, without secrets.
        paid: What the block has paid so far.

    Raises:
        JudgeFailed: the part has ended, and another model can be asked.
    """
    score_ends_at_s = SCORE_ENDS_AT_S.get()
    if score_ends_at_s is None or models == 1:
        yield
        return
    now_s = asyncio.get_running_loop().time()
    share_s = (score_ends_at_s - now_s) / models
    token = SCORE_ENDS_AT_S.set(now_s + share_s)
    try:
        async with asyncio.timeout_at(now_s + share_s) as share:
            yield
    except TimeoutError:
        if not share.expired():
            raise
        # A payment stands once for each account.
        own = [each for each in paid if each.account == ALL_JUDGES]
        raise JudgeFailed(
            f"{model} gave no answer in {share_s:.0f} s, its part of the time of the score",
            # Mostly prompts whose answers nobody waited for.
            cost=Cost(input_tokens=sum(each.tokens for each in own), usd=sum((each.usd for each in own), 0.0)),
            fails_every_question=True,
        ) from None
    finally:
        SCORE_ENDS_AT_S.reset(token)
