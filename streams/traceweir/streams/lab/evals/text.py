"""Formats a report as text like `adk eval`, so that parsers of ADK's output can read it; agents' text is escaped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from traceweir.schemas.figures import counted
from traceweir.schemas.invocation import FunctionCall
from traceweir.schemas.score import reported_status
from traceweir.schemas.text import printable
from traceweir.streams.lab.evals.results import (
    CaseResult,
    CriterionResult,
    MissingVerdicts,
    Report,
    TurnResult,
    prompt_of,
    text_of,
)

_VALUES_AT = 30
_WIDTH = 80
_LONGEST = 20_000
"""Maximum number of shown characters of a text, so that a long answer does not fill the terminal."""
_LONGEST_REASON = 500


def summary_lines(report: Report) -> Iterator[str]:
    """Yields the passed and failed cases of each eval set; as in ADK, a case that is not PASSED counts as failed."""
    yield "*" * 69
    yield "Eval Run Summary"
    for name, cases in report.by_set().items():
        passed = sum(case.status == "PASSED" for case in cases)
        yield f"{shown(name)}:"
        yield f"  Tests passed: {passed}"
        yield f"  Tests failed: {len(cases) - passed}"


def failure_lines(case: CaseResult) -> Iterator[str]:
    """Yields a sentence for each reason why a case did not pass."""
    name = f"{shown(str(case.file))}:{shown(case.eval_id)}"
    if case.problem is not None:
        yield f"{name}: {shown(case.problem)}"
    for each in case.criteria:
        if each.threshold is None or each.status == "PASSED":
            continue
        if each.status == "FAILED":
            yield f"{each.metric} for {name} Failed. Expected {each.threshold}, but got {each.value}."
        elif not (case.is_scenario and each.because == "missing_input"):
            yield f"{each.metric} for {name} was not evaluated. {shown(each.why_no_value)}"
    if case.problem is None and not any(each.threshold is not None for each in case.criteria):
        yield f"{name}: no criterion has a threshold, so there is nothing to pass"
    elif case.is_scenario and case.status == "NOT_EVALUATED" and case.problem is None:
        yield f"{name}: every criterion needs a reference, and a conversation_scenario has none"


def verdict_line(missing: MissingVerdicts) -> str:
    """Returns a sentence about a judged criterion that lacks verdicts."""
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(missing.reasons.items()))
    of = counted(missing.of, "case")
    what = f"no judge gave a verdict in {of}" if missing.are_all else f"{missing.count} of {of} have no verdict"
    return f"{missing.metric}: {what} ({why}); the first: {printable(missing.first, _LONGEST_REASON)}"


def judges_line(metric: str, judges: Mapping[str, tuple[int, int]]) -> str:
    """Returns a sentence about a criterion that several judges have judged: the passed cases and all cases of each.

    >>> judges_line("safety_v1", {"openai/a": (3, 4), "openai/b": (0, 1)})
    'safety_v1: 2 judges have judged, and two models judge differently: openai/a passed 3 of 4 cases, openai/b 0 of 1 case'
    """
    parts = [
        f"{printable(judge, 100)} {'' if number else 'passed '}{passed} of {counted(evaluated, 'case')}"
        for number, (judge, (passed, evaluated)) in enumerate(judges.items())
    ]
    return f"{metric}: {len(judges)} judges have judged, and two models judge differently: {', '.join(parts)}"


def detail_lines(case: CaseResult) -> Iterator[str]:
    """Yields a case in full: its criteria, and each invocation, expected and actual."""
    yield "*" * 68
    yield f"Eval Set Id: {shown(case.eval_set_id)}"
    yield f"Eval Id: {shown(case.eval_id)}"
    yield f"Overall Eval Status: {case.status}"
    if case.problem is not None:
        yield f"Problem: {shown(case.problem)}"
    for each in case.criteria:
        yield "-" * 69
        yield _metric_line(each)
        if each.value is None:
            yield f"Reason: {shown(each.why_no_value)}"
    if not case.turns:
        return
    yield "-" * 69
    yield "Invocation Details:"
    for turn in case.turns:
        yield ""
        yield f"Invocation {turn.number} of {turn.of}" + (f" (run {turn.run} of {case.runs})" if case.runs > 1 else "")
        yield from turn_lines(turn)
    yield from ("", "")


def turn_lines(turn: TurnResult) -> Iterator[str]:
    """Yields one invocation, expected and actual."""
    expected = turn.expected
    yield from _field("prompt", prompt_of(turn))
    if expected is not None:
        yield from _field("expected_response", text_of(expected.final_response))
    yield from _field("actual_response", text_of(turn.actual.final_response))
    if expected is not None:
        yield from _field("expected_tool_calls", _calls(expected.tool_uses))
    yield from _field("actual_tool_calls", _calls(turn.actual.tool_uses))
    for score in turn.scores:
        status = reported_status(score.metric, score.status, score.threshold)
        yield from _field(score.metric, f"{status} ({score.value})")


def shown(text: str) -> str:
    """Returns a text on one line, with control characters escaped."""
    return printable(text, _LONGEST)


def _metric_line(each: CriterionResult) -> str:
    status = reported_status(each.metric, each.status, each.threshold)
    return f"Metric: {each.metric}, Status: {status}, Score: {each.value}, Threshold: {each.threshold}"


def _field(label: str, value: str) -> Iterator[str]:
    lines = [
        part
        for line in value[:_LONGEST].split("\n")
        if value
        for part in textwrap.wrap(shown(line), _WIDTH, replace_whitespace=False) or [""]
    ] or ["(none)"]
    prefix = f"  {label}: ".ljust(_VALUES_AT)
    yield f"{prefix}{lines[0]}".rstrip()
    for line in lines[1:]:
        yield f"{' ' * len(prefix)}{line}".rstrip()


def _calls(calls: Sequence[FunctionCall]) -> str:
    return "\n".join(map(_call, calls))


def _call(call: FunctionCall) -> str:
    arguments = [f"{name}={value!r}" for name, value in (call.args or {}).items()]
    return f"{call.name}(\n  " + ",\n  ".join(arguments) + ")" if arguments else f"{call.name}()"
