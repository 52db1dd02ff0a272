"""Compares what is read from recorded spans with what really happened: a share right for each field.

`python -m tests.support.otlp_recordings` prints a table and each miss. A cell `a+b/c` says that of c true values a are
right and b are said to be missing.

A recording is a JSON document with `truth` (what the script of the agent did), `requests` and `logs` (the export
requests as the OpenTelemetry Collector writes them), compressed with xz.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from traceweir.schemas.events import EVENT
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.intake.otlp.decoding import add_logs, decode_logs, decode_spans
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

DATA = Path(__file__).parent.parent / "parity" / "data" / "otlp"
SUFFIX = ".json.xz"
FIELDS = (
    "sessions",
    "turns",
    "questions",
    "answers",
    "tools",
    "order",
    "args",
    "results",
    "errors",
    "agents",
    "input tokens",
    "output tokens",
    "models",
)
Tally = dict[str, list[int]]


class Recording(NamedTuple):
    """What an agent did, and the spans that it exported."""

    truth: dict[str, Any]
    spans: list[Span]


def names() -> list[str]:
    """Returns the names of the recordings."""
    return sorted(path.name.removesuffix(SUFFIX) for path in DATA.iterdir() if path.name.endswith(SUFFIX))


def document_of(name: str) -> dict[str, Any]:
    """Returns the document of a recording."""
    return json.loads(lzma.decompress((DATA / f"{name}{SUFFIX}").read_bytes()))  # type: ignore[no-any-return]


@cache
def load(name: str) -> Recording:
    """Returns a recording, which is kept and not to be changed: loading all of them takes a second of CPU, and 23 MB."""
    document = document_of(name)
    spans = [span for request in document["requests"] for span in decode_spans(json.dumps(request).encode()).spans]
    add_logs(spans, (log for request in document["logs"] for log in decode_logs(json.dumps(request).encode()).logs))
    return Recording(document["truth"], spans)


def traces_of(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """Returns the spans of each trace."""
    traces: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        traces[span.trace_id].append(span)
    return traces


def compare(truth: dict[str, Any], spans: Iterable[Span]) -> tuple[Tally, list[str]]:
    """Returns, for each field, how many values are right, said to be missing, and there in truth; and each miss."""
    tally: Tally = {field: [0, 0, 0] for field in FIELDS}
    misses: list[str] = []

    def count(field: str, right: bool, said: bool, where: str) -> None:
        tally[field][2] += 1
        tally[field][0] += right
        tally[field][1] += said and not right
        if not right:
            misses.append(f"{field}{' (said)' if said else ''}: {where}")

    traces = traces_of(spans)
    turns_in = Counter(each for session in truth["sessions"] for turn in session["turns"] for each in turn["trace_ids"])
    read_before: Counter[str] = Counter()
    known: set[str] = set()
    for session in truth["sessions"]:
        for turn in session["turns"]:
            known.update(turn["trace_ids"])
            where = f"{session['key']}[{turn['index']}]"
            found = [read_trace(traces[each]) for each in turn["trace_ids"] if each in traces]
            events = [event for each in found for event in each.events]
            for event in events:
                EVENT.validate_json(json.dumps(event))
            for read in found:
                for trace in read.traces:
                    ReasoningTrace.model_validate_json(json.dumps(trace))
            last = turn["trace_ids"][-1]
            if turns_in[last] > 1:
                # A conversation in one trace: an invocation for each of its turns.
                ids = list(dict.fromkeys(event["invocation_id"] for event in events if "invocation_id" in event))
                own = ids[read_before[last] :]
                own = own if read_before[last] == turns_in[last] - 1 else own[:1]
                events = [event for event in events if event.get("invocation_id") in own]
                read_before[last] += 1
            invocations = list(dict.fromkeys(event["invocation_id"] for event in events if "invocation_id" in event))
            said = any(each.startswith("the session ") for event in events for each in event.get("missing", ()))
            count("turns", len(invocations) == 1, said, f"{where}: {len(invocations)} invocations")
            expected = session["session_id"] if truth["session_id_in_spans"] else last
            sessions = {event["session_id"] for event in events}
            count("sessions", sessions == {expected}, said, f"{where}: {sessions} != {expected}")
            of_turn = events
            if len(invocations) > 1:  # the last one has the answer
                events = [event for event in events if event.get("invocation_id") == invocations[-1]]
            _compare_turn(turn, events, where, count, all_events=of_turn)
    extra = [each for each in traces if each not in known and read_trace(traces[each]).events]
    for each in extra:
        count("turns", False, False, f"trace {each} is no turn: {[span.name for span in traces[each]][:4]}")
    return tally, misses


def _compare_turn(turn: dict[str, Any], events: list[dict[str, Any]], where: str, count: Any, all_events: Any) -> None:
    by_type: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        by_type[event["type"]].append(event)
    started = next(iter(by_type["invocation.started"]), {})
    question = _text(started.get("user_content"))
    count("questions", question == turn["question"], bool(started.get("missing")), f"{where}: {question[:150]!r}")
    completed = next(iter(by_type["invocation.completed"]), {})
    answer = _text(completed.get("final_response"))
    count(
        "answers",
        answer == (turn["answer"] or ""),
        bool(completed.get("missing")),
        f"{where}: {answer[:150]!r} != {turn['answer']!r}",
    )
    calls, returned = by_type["tool.called"], by_type["tool.returned"]
    expected = turn["tool_calls"]
    names = [call["name"] for call in calls]
    lacking = any(each.startswith("the tool calls ") for each in completed.get("missing", ()))
    open_calls = any("whose results it does not contain" in each for each in completed.get("missing", ()))
    # That the turn is in several sessions says that a call of it is in another one.
    is_split = any(each.startswith("the session ") for event in all_events for each in event.get("missing", ()))
    apart = [each for each in all_events if each["type"] == "tool.called" and each not in calls] if is_split else []
    is_known = all(_matched(call, [*calls, *apart]) is not None for call in expected)
    count(
        "order",
        names == [call["name"] for call in expected],
        lacking or (is_split and is_known),
        f"{where}: {names} != {[c['name'] for c in expected]}",
    )
    left = list(calls)
    for call in expected:
        found = _matched(call, left)
        count("tools", found is not None, lacking or _matched(call, apart) is not None, f"{where}: no {call['name']}")
        if found is None:
            continue
        left.remove(found)
        args = found.get("args")
        count(
            "args",
            args == call["args"],
            bool(found.get("missing")),
            f"{where} {call['name']}: {args!r:.200} != {call['args']!r:.200}",
        )
        result = next((r for r in returned if _id(r) == _id(found)), None)
        if result in returned:
            returned.remove(result)
        said = open_calls if result is None else bool(result.get("missing"))
        if call["error"] is not None:
            error = (result or {}).get("error")
            right = error is not None and call["error"] in error
            count("errors", right, said, f"{where} {call['name']}: {error!r:.200} != {call['error']!r}")
        elif not call.get("handoff_to") or call["result"] is not None:
            response = (result or {}).get("response", "<absent>")
            right = result is not None and result.get("error") is None and _same(response, call["result"])
            count(
                "results",
                right,
                said,
                f"{where} {call['name']}: {response!r:.200} {(result or {}).get('error')!r:.100} != {call['result']!r:.200}",
            )
    for call in left:
        count("tools", False, False, f"{where}: {call['name']} is no call")
    models = [event for event in all_events if event["type"] == "model.called"]
    for field, key in (("input tokens", "input_tokens"), ("output tokens", "output_tokens")):
        told, true = [m.get(key) for m in models], [m[key] for m in turn["llm_calls"]]
        said = any("the tokens " in sentence for sentence in completed.get("missing", ()))
        count(field, _fits(told, true), said, f"{where}: {told} != {true}")
    told_models = [event["model"] for event in models]
    failed = sum(m["input_tokens"] is None for m in turn["llm_calls"])
    known = [model for model in told_models if model != "unknown"]
    right = all(any(each.startswith(m["model"]) for m in turn["llm_calls"]) for each in known) and bool(known)
    right = right and len(told_models) - len(known) <= failed  # a failed call has not always a model
    notes = completed.get("missing", ())
    count("models", right, any("name of the model " in each for each in notes), f"{where}: {told_models}")
    named = {event.get("agent_name") for event in events} | {event.get("author") for event in events}
    said = any("name of the agent " in each for each in notes)
    count("agents", turn["agents"][0] in named, said, f"{where}: {named} lacks {turn['agents'][0]}")


def _fits(told: list[int | None], true: list[int | None]) -> bool:
    """Returns whether the counts are the true ones; a failed call, which has none, can be left out."""
    left = list(true)
    for number in told:
        while left and left[0] is None and number is not None:
            del left[0]
        if not left or left.pop(0) != number:
            return False
    return not any(number is not None for number in left)


def _id(event: dict[str, Any]) -> str:
    return str(event["event_id"]).rpartition(":")[0]


def _matched(call: dict[str, Any], found: list[dict[str, Any]]) -> dict[str, Any] | None:
    same = [each for each in found if each["name"] == call["name"]]
    equal = [each for each in same if each.get("args") == call["args"]]
    return next(iter(equal or same), None)


def _text(content: dict[str, Any] | None) -> str:
    return "\n".join(part["text"] for part in (content or {}).get("parts", []))


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or _json(one) == _json(other)


def _json(value: Any) -> Any:
    """Returns a value as a reader of its text understands it: frameworks give results to models as texts."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return {"True": True, "False": False, "None": None}.get(value, value)
    return value


def main() -> None:
    """Prints the table and the misses."""
    write = sys.stdout.write
    write(f"{'recording':34}" + "".join(f"{field:>14}" for field in FIELDS) + "\n")
    missed: list[str] = []
    for name in names():
        tally, misses = compare(*load(name))
        cells = (f"{right}{f'+{said}' if said else ''}/{total}" for right, said, total in tally.values())
        write(f"{name:34}" + "".join(f"{cell:>14}" for cell in cells) + "\n")
        missed += [f"{name}: {miss}" for miss in misses]
    write("".join(f"{miss}\n" for miss in missed))


if __name__ == "__main__":
    main()
