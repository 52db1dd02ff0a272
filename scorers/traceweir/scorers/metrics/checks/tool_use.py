"""Counts the calls of each tool and those that failed, as the checks of tools need them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import FunctionCall, Invocation
from traceweir.schemas.refused_record import TOOL_RESULTS
from traceweir.schemas.text import printable
from traceweir.schemas.tool_results import is_failure, places_of_results
from traceweir.scorers.base import (
    Measurement,
    MissingInput,
    Subject,
    invocation_of,
    recorded_calls,
    require_accepted,
    require_read,
)

MAX_TOOLS = 50
"""Maximum number of tools that `details.tools` names: those that failed and those that were called most often."""
MAX_NAME_CHARS = 100
"""A longer name of a tool is cut in `details`."""
SHOWN_CALL_CHARS = 200
MAX_TURNS = 50
"""Maximum number of invocations in `details.turns`, on which a finding rests."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """A call of a tool, and whether it failed."""

    call: FunctionCall
    failed: bool | None
    """Whether the result says that the call failed; None if no result was recorded, or if it cannot say so."""


def tool_uses_of(subject: Subject, invocation: Invocation | None = None) -> Sequence[CallOutcome]:
    """Returns the tool calls of an invocation, in order, each with its outcome.

    Args:
        subject: The subject, whose session keeps what is found for other scorers.
        invocation: An invocation of the subject's session; None: the subject's own.

    Raises:
        MissingInput: the tool calls were not recorded, or there is no invocation.
    """
    invocation = invocation or invocation_of(subject)
    key = tool_uses_of, id(invocation)
    known = subject.found_of_session.get(key)
    if known is None:
        known = subject.found_of_session[key] = tuple(_tool_uses(invocation))
    return cast("tuple[CallOutcome, ...]", known)


def _tool_uses(invocation: Invocation) -> list[CallOutcome]:
    calls = recorded_calls(invocation)
    if not calls:
        return []
    results = invocation.tool_responses
    lost = any(sentence.startswith("the result ") for sentence in invocation.unread or ())
    is_told = not any(sentence.startswith("the outcome ") for sentence in invocation.unread or ())
    places, _ = places_of_results(calls, results)
    uses = []
    for call, place in zip(calls, places, strict=True):
        found = None if place is None else results[place].response
        unknown = place is None or (found is None and lost)
        failed = not unknown and is_failure(found)
        uses.append(CallOutcome(call, None if unknown or not (failed or is_told) else failed))
    return uses


def require_results(invocation: Invocation, uses: Iterable[CallOutcome]) -> None:
    """Checks that the result of each call was recorded.

    Raises:
        MissingInput: a result was not; a call that may have failed must not count as one that did not.
    """
    unknown = sum(use.failed is None for use in uses)
    require_accepted(invocation, TOOL_RESULTS)
    if unknown:
        require_outcomes(invocation)
        require_read(invocation, "result")
        raise MissingInput(
            f"no result was recorded of {unknown} tool {'call' if unknown == 1 else 'calls'}", "not_recorded"
        )


def require_outcomes(invocation: Invocation) -> None:
    """Checks that the source of each result can tell whether the tool failed.

    Raises:
        MissingInput: one cannot; of such results, those that look like failures are not all failures.
    """
    require_read(invocation, "outcome")


def counts_of(uses: Iterable[CallOutcome]) -> JsonObject:
    """Returns the calls of each tool, its errors, and its calls without a recorded result if there are any.

    >>> counts_of([CallOutcome(FunctionCall(name="find"), True), CallOutcome(FunctionCall(name="find"), None)])
    {'find': {'calls': 2, 'errors': 1, 'unknown': 1}}
    """
    counts: dict[str, dict[str, int]] = {}
    for use in uses:
        of_tool = counts.setdefault(use.call.name, {"calls": 0, "errors": 0})
        of_tool["calls"] += 1
        if use.failed:
            of_tool["errors"] += 1
        elif use.failed is None:
            of_tool["unknown"] = of_tool.get("unknown", 0) + 1
    return _bounded(counts)


def summed_counts(measured: Iterable[Measurement]) -> JsonObject:
    """Returns the sums of the counts in `details.tools` of the measurements of a session."""
    counts: dict[str, dict[str, int]] = {}
    for each in measured:
        tools = each.details.get("tools")
        for name, of_invocation in (tools if isinstance(tools, Mapping) else {}).items():
            of_tool = counts.setdefault(name, {"calls": 0, "errors": 0})
            for kind, count in (of_invocation if isinstance(of_invocation, Mapping) else {}).items():
                of_tool[kind] = of_tool.get(kind, 0) + (count if isinstance(count, int) else 0)
    return _bounded(counts)


def shown_call(call: FunctionCall) -> str:
    """Returns a call as text for `details`, cut to 200 characters."""
    arguments = "" if call.args is None else json.dumps(call.args, ensure_ascii=False)
    return printable(f"{call.name}({arguments})", SHOWN_CALL_CHARS)


def shown_names(names: Sequence[str]) -> str:
    """Returns names for a rationale, the first ten of them.

    >>> shown_names(["find", "book"])
    'find, book'
    """
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(printable(name, MAX_NAME_CHARS) for name in names[:10]) + more


def named_turns(invocation_ids: Iterable[str]) -> list[JsonValue]:
    """Returns the ids of the invocations on which a finding rests, the first 50."""
    return [*islice(invocation_ids, MAX_TURNS)]


def _bounded(counts: Mapping[str, dict[str, int]]) -> JsonObject:
    first = sorted(counts.items(), key=lambda each: (-each[1]["errors"], -each[1]["calls"], each[0]))[:MAX_TOOLS]
    named: dict[str, JsonValue] = {}
    for name, of_tool in first:
        named.setdefault(printable(name, MAX_NAME_CHARS), dict(of_tool))
    return named
