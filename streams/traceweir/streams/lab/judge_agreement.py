"""Measures how far a judge agrees with labelled cases, and estimates what asking about them costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.text import printable
from traceweir.scorers.judge import Judge, Question, Reply, Room
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import CasesError, LabelledCase
from traceweir.scorers.scripted_judge import AgreeableJudge
from traceweir.streams.base.statistics.label_agreement import (
    LEAST_OF_A_LABEL,
    LabelledVerdicts,
    bias_interval,
    bias_to_yes,
    kappa,
    kappa_interval,
)
from traceweir.streams.base.statistics.rate_intervals import Interval, rate_interval
from traceweir.streams.lab.judge_check import JudgedCase, measured_case
from traceweir.streams.scoring.judges.errors import FinalFailure
from traceweir.streams.scoring.judges.models import Use
from traceweir.streams.scoring.judges.service import CACHED, Judging


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of verdicts."""

    count: int
    of: int
    """Number of verdicts; at least 1."""

    @property
    def value(self) -> float:
        """The share, from 0 to 1."""
        return self.count / self.of

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval by Wilson; None for fewer than `LEAST_OF_A_LABEL` verdicts."""
        return rate_interval(self.count, self.of) if self.of >= LEAST_OF_A_LABEL else None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Holds the figures of a set of cases. A case without a verdict counts in none of them but `without_verdict`."""

    cases: int
    verdicts: LabelledVerdicts
    without_verdict: Mapping[str, int]
    """Number of cases without a verdict by cause; empty if all have one."""

    @classmethod
    def of(cls, judged: Sequence[JudgedCase]) -> Agreement:
        """Returns the figures of judged cases."""
        known = Counter((each.case.must_pass, each.passes) for each in judged if each.passes is not None)
        verdicts = LabelledVerdicts(
            good=known[True, True] + known[True, False],
            good_passed=known[True, True],
            bad=known[False, True] + known[False, False],
            bad_passed=known[False, True],
        )
        causes = Counter(each.cause for each in judged if each.passes is None)
        return cls(len(judged), verdicts, dict(sorted(causes.items())))

    @property
    def agreement(self) -> Rate | None:
        """The share of the verdicts that agree with the label; None without a verdict."""
        return _rate(self.verdicts.agreed, self.verdicts.good + self.verdicts.bad)

    @property
    def false_passes(self) -> Rate | None:
        """The share of the cases that must fail and pass; None without a verdict on such a case."""
        return _rate(self.verdicts.bad_passed, self.verdicts.bad)

    @property
    def false_fails(self) -> Rate | None:
        """The share of the cases that must pass and fail; None without a verdict on such a case."""
        return _rate(self.verdicts.good - self.verdicts.good_passed, self.verdicts.good)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa of verdicts and labels; None without verdicts on cases of both labels."""
        return kappa(self.verdicts)

    @property
    def kappa_interval(self) -> Interval | None:
        """The 95 % interval of kappa; None with too few verdicts."""
        return kappa_interval(self.verdicts)

    @property
    def bias_to_yes(self) -> float | None:
        """The share of verdicts that pass minus the share of labels that must; None without a verdict."""
        return bias_to_yes(self.verdicts)

    @property
    def bias_interval(self) -> Interval | None:
        """The 95 % interval of the bias; None with too few verdicts."""
        return bias_interval(self.verdicts)


def _rate(count: int, of: int) -> Rate | None:
    return Rate(count, of) if of else None


def by_language(judged: Sequence[JudgedCase]) -> Mapping[str, Agreement]:
    """Returns the figures of each language, in the order in which the languages come first."""
    cases: dict[str, list[JudgedCase]] = {}
    for each in judged:
        cases.setdefault(each.case.language, []).append(each)
    return {language: Agreement.of(found) for language, found in cases.items()}


class QuestionsEstimate(Judge):
    """Adds up what asking about cases will cost, and asks nothing.

    As a judge it answers with stored verdicts, else with the simplest answer, so that a criterion whose second question
    depends on the first answer asks both.
    """

    def __init__(self, judging: Judging) -> None:
        self._judging = judging
        self._session = judging.session()
        self._simplest = AgreeableJudge()
        self._foreseen: set[bytes] = set()
        self.questions = 0
        """Number of questions to the model; an unusable answer, which is asked for again, is not foreseen."""
        self.known = 0
        """Further questions whose verdict is stored, or will be; they cost nothing."""
        self.use = Use()
        """The tokens and USD of the questions, with answers of usual length."""
        self.unpriced: set[str] = set()
        """Models without a price; their questions count as free."""

    async def add(self, scorer: JudgedScorer, cases: Sequence[LabelledCase]) -> None:
        """Adds the questions of a criterion about cases.

        Raises:
            CasesError: the criterion cannot judge some of the cases: something that its question needs is missing.
        """
        problems = []
        for case in cases:
            try:
                asking = case.scorer(scorer)
            except ValidationError as error:
                problems.append(f"case {printable(case.id)!r}: {scorer.metric}: {explain(error)}")
                continue
            measured, _, problem = await measured_case(asking, case.subject(asking, self))
            if measured is None:
                problems.append(f"case {printable(case.id)!r}: {scorer.metric}: {problem}")
        if problems:
            raise CasesError("\n".join(problems))

    async def room(self, question: Question) -> Room | None:
        """Returns how much of the window of its model the question takes; None if the window is unknown."""
        return await self._session.room(question)

    async def ask(self, question: Question) -> Reply:
        """Returns the stored verdict on a question, or the simplest answer."""
        stored = self._judging.stored(question)
        key = self._judging.key_of(question)
        if stored is not None or key in self._foreseen:
            self.known += 1
            return Reply(text=stored, cost=CACHED) if stored is not None else await self._simplest.ask(question)
        self._foreseen.add(key)
        self.questions += 1
        with suppress(FinalFailure):
            # A model of an unknown provider fails when it is asked, with the reason.
            self.use += self._judging.estimate(question)
            if not self._judging.has_price(question):
                self.unpriced.add(self._judging.shown_model_of(question))
        return await self._simplest.ask(question)
