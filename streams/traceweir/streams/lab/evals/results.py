"""The results of an evaluation: per criterion, per case, and the report. Statuses and counts follow Google ADK."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.eval_set import EvalInvocation
from traceweir.schemas.figures import why_no_value
from traceweir.schemas.invocation import Content, FunctionCall, Invocation
from traceweir.schemas.score import UNANSWERED, Cause, NotEvaluated, Score, Status


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """The result of a case for one criterion, over all invocations of all runs."""

    metric: str
    threshold: float | None
    """None: the criterion is informational and does not affect the status of the case."""
    value: float | None
    status: Status
    because: NotEvaluated | None = None
    """The reason for a missing value."""
    rationale: str = ""
    details: JsonObject | None = None
    judged: bool = False
    """Whether the criterion asks a judge."""
    cause: Cause | None = None
    """What a judge lacked, or why an input is missing; None if unknown."""
    judge: str | None = None
    """The model whose verdicts the value is, or several joined with ` + `; None if no score names one."""

    @property
    def why_no_value(self) -> str:
        """The reason for a missing value, its rationale and its cause; empty if there is a value."""
        return "" if self.because is None else why_no_value(self.because, self.cause, self.rationale)


@dataclass(frozen=True, slots=True)
class MissingVerdicts:
    """The results of a judged criterion that have no verdict although a judge was to be asked."""

    metric: str
    reasons: Mapping[NotEvaluated, int]
    """How many results have no verdict, by reason."""
    of: int
    """Number of results for which a judge was to be asked."""
    first: str
    """The rationale of the first result without a verdict."""

    @property
    def count(self) -> int:
        """Number of results without a verdict."""
        return sum(self.reasons.values())

    @property
    def are_all(self) -> bool:
        """Whether no result of the criterion has a verdict."""
        return self.count == self.of


@dataclass(frozen=True, slots=True)
class TurnResult:
    """One invocation of one run, with the expected invocation."""

    run: int
    """From 1."""
    number: int
    """Position of the invocation within its run, from 1."""
    of: int
    """Number of invocations of the run."""
    actual: Invocation
    expected: EvalInvocation | None
    """None: the case has no expectation, or its invocations cannot be paired with those of the run."""
    scores: Sequence[Score]
    started_at: datetime | None = None
    """When the recorded invocation began, in UTC; None if unknown."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case."""

    file: Path
    eval_set_id: str
    eval_id: str
    criteria: Sequence[CriterionResult] = ()
    turns: Sequence[TurnResult] = ()
    runs: int = 0
    is_scenario: bool = False
    problem: str | None = None
    """The reason why the expectation could not be compared with the recording."""

    @property
    def status(self) -> Status:
        """FAILED if a criterion is FAILED; else PASSED if a criterion is PASSED and there is no problem; else NOT_EVALUATED.

        Criteria without a threshold do not count.
        """
        statuses = {criterion.status for criterion in self.criteria if criterion.threshold is not None}
        if "FAILED" in statuses:
            return "FAILED"
        return "PASSED" if "PASSED" in statuses and self.problem is None else "NOT_EVALUATED"

    def as_json(self) -> JsonObject:
        """Returns the whole result as JSON, for programs."""
        return {
            "file": str(self.file),
            "eval_set_id": self.eval_set_id,
            "eval_id": self.eval_id,
            "status": self.status,
            "problem": self.problem,
            "runs": self.runs,
            "criteria": [
                {
                    "metric": each.metric,
                    "threshold": each.threshold,
                    "value": each.value,
                    "status": each.status,
                    "not_evaluated_because": each.because,
                    "cause": each.cause,
                    "rationale": each.rationale,
                    "details": each.details or {},
                }
                for each in self.criteria
            ],
            "invocations": [_turn_as_json(turn) for turn in self.turns],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all cases, in the order of the files and of their cases."""

    cases: Sequence[CaseResult]

    @property
    def passed(self) -> bool:
        """Whether there is a case, every case is PASSED, and every judged criterion has a verdict in some case.

        ADK passes a case whose judged criterion has no verdict, if another criterion is PASSED. Without this rule a wrong key
        or address of the judge would never be noticed.
        """
        has_passed = bool(self.cases) and all(case.status == "PASSED" for case in self.cases)
        return has_passed and not any(each.are_all for each in self.missing_verdicts())

    def missing_verdicts(self) -> list[MissingVerdicts]:
        """Returns the judged criteria that lack verdicts; results that need no judge, such as a missing input, do not count."""
        asked: dict[str, list[CriterionResult]] = {}
        for case in self.cases:
            for each in case.criteria:
                if each.judged and (each.because is None or each.because in UNANSWERED):
                    asked.setdefault(each.metric, []).append(each)
        found = []
        for metric, results in asked.items():
            missing = [each for each in results if each.because is not None]
            if missing:
                reasons = Counter(each.because for each in missing if each.because is not None)
                found.append(MissingVerdicts(metric, reasons, len(results), missing[0].rationale))
        return found

    def several_judges(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Returns the criteria with a threshold whose values are of more than one judge.

        Returns:
            Per criterion and judge, the number of passed cases and of cases with a value.
        """
        found: dict[str, dict[str, tuple[int, int]]] = {}
        for each in (criterion for case in self.cases for criterion in case.criteria):
            if each.judge is None or each.value is None or each.threshold is None:
                continue
            of_judges = found.setdefault(each.metric, {})
            passed, evaluated = of_judges.get(each.judge, (0, 0))
            of_judges[each.judge] = (passed + (each.status == "PASSED"), evaluated + 1)
        return {metric: of_judges for metric, of_judges in found.items() if len(of_judges) > 1}

    def by_set(self) -> dict[str, list[CaseResult]]:
        """Groups the cases by eval set id; as in ADK, files with the same eval set id form one eval set."""
        found: dict[str, list[CaseResult]] = {}
        for case in self.cases:
            found.setdefault(case.eval_set_id, []).append(case)
        return found


def _turn_as_json(turn: TurnResult) -> JsonObject:
    expected = turn.expected
    return {
        "run": turn.run,
        "invocation_id": turn.actual.invocation_id,
        "started_at": turn.started_at.isoformat() if turn.started_at else None,
        "prompt": prompt_of(turn),
        "expected_response": None if expected is None else text_of(expected.final_response),
        "actual_response": text_of(turn.actual.final_response),
        "expected_tool_calls": None if expected is None else _calls(expected.tool_uses),
        "actual_tool_calls": _calls(turn.actual.tool_uses),
        "scores": [
            {
                "metric": score.metric,
                "threshold": score.threshold,
                "value": score.value,
                "status": score.status,
                "not_evaluated_because": score.not_evaluated_because,
                "cause": score.cause,
                "rationale": score.rationale,
                "details": score.details,
            }
            for score in turn.scores
        ],
    }


def prompt_of(turn: TurnResult) -> str:
    """Returns the prompt of the expected invocation, else the recorded prompt."""
    content_of_user = turn.expected.user_content if turn.expected else turn.actual.user_content
    return text_of(content_of_user)


def text_of(content: Content | None) -> str:
    """Returns the text of a message; empty if there is no message."""
    return content.text if content else ""


def _calls(calls: Sequence[FunctionCall]) -> list[JsonValue]:
    return [{"name": call.name, "args": call.args} for call in calls]
