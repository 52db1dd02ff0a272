"""Defines the judge that the scorers of one session use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from traceweir.schemas.score import Cost
from traceweir.scorers.judge import SCORE_ENDS_AT_S, BudgetSpent, Judge, JudgeFailed, Question, Reply, Room
from traceweir.scorers.judged.vote import total_cost
from traceweir.streams.scoring.judges.budget import ALL_JUDGES, Paid
from traceweir.streams.scoring.judges.errors import FinalFailure
from traceweir.streams.scoring.judges.fitness import FitnessCheck
from traceweir.streams.scoring.judges.verdicts import JudgeUsage, JudgeVerdict, UnusableReply

# The service makes this judge.
if TYPE_CHECKING:
    from traceweir.streams.scoring.judges.service import Judging

WatchQuestion = Callable[[str], AbstractContextManager[Callable[[Cost], object]]]
"""Watches a question: receives the model, is entered until there is an answer, and then receives its cost."""


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
