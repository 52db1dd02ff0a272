"""Scores recorded conversations against eval cases, with Google ADK's statuses and pooling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import mean

from traceweir.schemas.base import JsonObject
from traceweir.schemas.eval_set import EvalCase, EvalInvocation
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers.evaluation.metered_judge import joined_models
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.scorers.judge import Judge
from traceweir.streams.lab.evals.files import EvalFile
from traceweir.streams.lab.evals.recordings import Recording, Runs
from traceweir.streams.lab.evals.results import CaseResult, CriterionResult, Report, TurnResult

AT_ONCE = 16
"""Maximum number of cases that are scored concurrently; only judged criteria wait."""
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class ScoredFile:
    """A file to be scored, with its criteria and its recorded conversations."""

    file: EvalFile
    plan: Plan
    runs: Runs
    session_ids: Mapping[str, str]
    """Session ids by eval id, for cases that were recorded under another id."""
    judge: Judge | None = None
    """The judge for the criteria of this file."""


async def score_files(
    files: Sequence[ScoredFile],
    *,
    now: Callable[[], datetime],
    num_runs: int | None = None,
    pooled: bool = False,
    judge: Judge | None = None,
    timeout_s: float = TIMEOUT_S,
    judge_timeout_s: float | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Report:
    """Scores every case of every file.

    Every case is measured; the config's `sampling` is ignored. With one run, the value of a criterion is its session
    value. With several runs, or if `pooled`, the value is the mean over all invocations of all runs, as in
    `AgentEvaluator`.

    Args:
        files: The files with their criteria and recordings.
        now: Returns the current time.
        num_runs: The first `num_runs` runs of each case are used; a case with fewer is NOT_EVALUATED. None: all runs.
        pooled: Whether to pool a single run as well.
        judge: The judge for files without a judge of their own.
        timeout_s: Maximum number of seconds for a criterion on one invocation.
        judge_timeout_s: Maximum number of seconds for a judged criterion on one invocation; None: `timeout_s`.
        progress: Called with the number of cases scored so far, and with the number of all cases.
    """
    cases = [(each, case) for each in files for case in each.file.cases]
    limit = asyncio.Semaphore(AT_ONCE)
    done = iter(range(1, len(cases) + 1))

    async def scored(each: ScoredFile, case: EvalCase) -> CaseResult:
        async with limit:
            result = await _case(each, case, num_runs, pooled, each.judge or judge, (timeout_s, judge_timeout_s), now)
        progress(next(done), len(cases))
        return result

    return Report(await asyncio.gather(*(scored(each, case) for each, case in cases)))


async def _case(
    scored: ScoredFile,
    case: EvalCase,
    num_runs: int | None,
    pooled: bool,
    judge: Judge | None,
    timeouts_s: tuple[float, float | None],
    now: Callable[[], datetime],
) -> CaseResult:
    name = scored.session_ids.get(case.eval_id, case.eval_id)
    runs = list(scored.runs.get(name, ()))[:num_runs]
    empty = CaseResult(
        scored.file.path, scored.file.eval_set.eval_set_id, case.eval_id, is_scenario=case.conversation is None
    )
    if len(runs) < (num_runs or 1):
        there = f"there are {len(runs)} recorded runs" if runs else "there is no recorded session"
        asked = f", and {num_runs} are needed" if runs else ""
        return replace(empty, problem=f"{there} under the id {name!r}{asked}")
    plan = replace(scored.plan, sampling=dict.fromkeys(scored.plan.sampling, 1.0))
    problems: list[str] = []
    turns: list[TurnResult] = []
    found: list[list[Score]] = []
    for number, run in enumerate(runs, start=1):
        expected = _expected(case, run, number, len(runs), problems)
        made = _turns(case, run, expected)
        timeout_s, judge_timeout_s = timeouts_s
        scores = await evaluate(
            plan, run.session, made, now=now, timeout_s=timeout_s, judge=judge, judge_timeout_s=judge_timeout_s
        )
        found.append(scores)
        turns += _turn_results(number, plan, made, expected, scores)
    measured = {score.metric for scores in found for score in scores}
    criteria = [
        _criterion(metric, found, pooled=pooled or len(runs) > 1)
        for metric in plan.metrics
        if metric.runs_on is None or metric.name in measured
    ]
    return replace(empty, criteria=criteria, turns=turns, runs=len(runs), problem="; ".join(problems) or None)


def _expected(
    case: EvalCase, run: Recording, number: int, of: int, problems: list[str]
) -> Sequence[EvalInvocation | None]:
    """Returns the expected invocation for each invocation of a run; only None values if the two cannot be paired."""
    nothing = [None] * len(run.turns)
    if case.conversation is None:
        return nothing
    if len(case.conversation) == len(run.turns):
        return case.conversation
    which = f" of run {number}" if of > 1 else ""
    problems.append(
        f"conversation: has {len(case.conversation)} invocations, and the recorded session{which} has "
        f"{len(run.turns)}; invocations are compared in pairs, so both must have the same number"
    )
    return nothing


def _turns(case: EvalCase, run: Recording, expected: Sequence[EvalInvocation | None]) -> list[Turn]:
    return [
        Turn(
            _named(_with_rubrics(actual.invocation, case, number), number),
            wanted.reference if wanted else None,
            started_at=actual.started_at,
        )
        for number, (actual, wanted) in enumerate(zip(run.turns, expected, strict=True))
    ]


def _with_rubrics(actual: Invocation, case: EvalCase, number: int) -> Invocation:
    """Adds the rubrics of the case and of the expected invocation, as ADK does.

    These rubrics replace rubrics of the recorded invocation with the same id.
    """
    given = case.rubrics_of(number)
    names = {rubric.rubric_id for rubric in given}
    rubrics = [*given, *(rubric for rubric in actual.rubrics or () if rubric.rubric_id not in names)]
    return actual.model_copy(update={"rubrics": rubrics}) if given else actual


def _named(invocation: Invocation, number: int) -> Invocation:
    return invocation if invocation.invocation_id else invocation.model_copy(update={"invocation_id": f"#{number}"})


def _turn_results(
    run: int, plan: Plan, turns: Sequence[Turn], expected: Sequence[EvalInvocation | None], scores: Sequence[Score]
) -> list[TurnResult]:
    # Scores of one metric come in the order of the invocations that the metric applies to, so ids are not needed.
    columns: dict[str, list[Score]] = {}
    for score in reversed(scores):
        if score.level == "invocation":
            columns.setdefault(score.metric, []).append(score)
    of_session = {score.metric: score for score in scores if score.level == "session"}
    found = []
    for at, turn in enumerate(turns):
        mine = []
        for metric in plan.metrics:
            if metric.name in columns and metric.applies(turn.reference):
                mine.append(columns[metric.name].pop())
            elif metric.name in of_session and metric.scorer is not None and metric.scorer.level == "session":
                whole = of_session[metric.name]
                mine.append(whole if at == len(turns) - 1 else whole.model_copy(update=_AT_THE_LAST))
        found.append(TurnResult(run, at + 1, len(turns), turn.invocation, expected[at], mine, turn.started_at))
    return found


_AT_THE_LAST: JsonObject = {
    "value": None,
    "status": "NOT_EVALUATED",
    "not_evaluated_because": None,
    "cause": None,
    "rationale": "the criterion measures the session; its value stands at the last invocation",
    "details": {},
}
"""What a criterion of a session has at an invocation that is not the last, as in ADK."""


def _criterion(metric: Metric, runs: Sequence[Sequence[Score]], *, pooled: bool) -> CriterionResult:
    judged = metric.scorer is not None and metric.scorer.judged
    scores = [score for run in runs for score in run if score.metric == metric.name]
    parts = [score for score in scores if score.level == "invocation"]
    totals = [score for score in scores if score.level != "invocation"]
    if len(totals) == 1 and not (pooled and parts):
        only = totals[0]
        return CriterionResult(
            metric.name,
            metric.threshold,
            only.value,
            only.status,
            only.not_evaluated_because,
            _rationale(only, parts),
            only.details,
            judged=judged,
            cause=only.cause,
            judge=only.judge,
        )
    of = parts or totals
    values = [score.value for score in of if score.value is not None]
    if not values:
        why = next(iter(totals), None)
        because, rationale = (
            (why.not_evaluated_because, _rationale(why, parts))
            if why
            else ("missing_input", "the recorded session has nothing that this criterion measures")
        )
        return CriterionResult(
            metric.name,
            metric.threshold,
            None,
            "NOT_EVALUATED",
            because,
            rationale,
            judged=judged,
            cause=why.cause if why else None,
        )
    # statistics.mean is exact, whereas sum and fmean round; ADK uses statistics.mean too.
    value = mean(values)
    rationale = f"over {len(values)} of {len(of)} values of {len(runs)} runs"
    return CriterionResult(
        metric.name,
        metric.threshold,
        value,
        metric.status_of(value),
        None,
        rationale,
        judged=judged,
        judge=joined_models(score.judge for score in of if score.value is not None),
    )


def _rationale(total: Score, parts: Sequence[Score]) -> str:
    """Returns the rationale; for a session without a value, adds the rationale of the first invocation as the cause."""
    of = (part.rationale for part in parts if part.not_evaluated_because == total.not_evaluated_because)
    first = next(of, "") if total.value is None else ""
    return f"{total.rationale}; the first: {first}" if first else total.rationale
