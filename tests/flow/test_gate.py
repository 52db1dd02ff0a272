"""Gate: which traces are published, the reasons of rejections, and equal decisions despite batches and restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pytest
from tests.support.flow import TOPICS
from tests.support.redaction.known_names import KnownNames

from traceweir.schemas.candidate import Embedding
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.testing import Flow, instant, trace


def gate_only(gate: Mapping[str, Any] | None = None, **options: Any) -> Flow:
    return Flow(stages=("gate",), plan=read_plan(orjson.dumps({"gate": gate or {}})), **options)


def candidate(
    number: int | str,
    vector: Sequence[float] | None = None,
    session: str = "s",
    scope: str = "travel@e",
    required: Mapping[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    embedding = None if vector is None else Embedding.of("e", np.array(vector, np.float32)).model_dump()
    return {
        "candidate_id": f"{session}/{number}",
        "session_id": session,
        "segment": 0,
        "revision": 0,
        "scope": scope,
        "trace": trace(number, session, **changes),
        "required": required or {},
        "embedding": embedding,
        "novelty_missing": None if vector else "no_embedder",
        "occurred_at": instant(0),
    }


def decisions(flow: Flow) -> dict[str, list[str]]:
    return {score["trace_id"]: score["details"]["reasons"] for score in flow.results("gate")}


def network(flow: Flow) -> list[tuple[bytes | None, bytes | None]]:
    return [(message.key, message.value) for message in flow.read(TOPICS.network)]


PASSED, FAILED = {"status": "PASSED"}, {"status": "FAILED"}
TIMED_OUT = {"status": "NOT_EVALUATED", "not_evaluated_because": "timeout"}
REASONS = {
    "accepted": (candidate(1, required={"a": PASSED, "b": PASSED}), []),
    "threshold": (candidate(1, required={"a": PASSED, "b": PASSED}, outcome={"confidence": 0.5}), ["below_threshold"]),
    "org": (candidate(1, required={"a": PASSED, "b": PASSED}, metadata={"visibility": "org"}), ["visibility"]),
    "private": (candidate(1, required={"a": PASSED, "b": PASSED}, metadata={"privacy_level": "private"}), ["privacy"]),
    "failed": (candidate(1, required={"a": FAILED, "b": PASSED}), ["criterion_failed:a"]),
    "not evaluated": (candidate(1, required={"a": PASSED, "b": TIMED_OUT}), ["criterion_not_evaluated:b:timeout"]),
    "absent": (candidate(1, required={"a": PASSED}), ["criterion_not_evaluated:b:missing_input"]),
    "all": (
        candidate(
            1,
            required={"a": FAILED, "b": FAILED},
            outcome={"confidence": 0.1},
            metadata={"visibility": "private", "privacy_level": "private"},
        ),
        ["below_threshold", "visibility", "privacy", "criterion_failed:a", "criterion_failed:b"],
    ),
}


@pytest.mark.parametrize(("document", "reasons"), REASONS.values(), ids=REASONS)
async def test_every_decision_is_published_with_its_reasons(document: dict[str, Any], reasons: list[str]) -> None:
    plan = read_plan(
        orjson.dumps(
            {
                "criteria": {"response_match_score": 0.5, "tool_trajectory_avg_score": 0.5},
                "gate": {"required": ["response_match_score", "tool_trajectory_avg_score"]},
            }
        )
    )
    names = {"a": "response_match_score", "b": "tool_trajectory_avg_score"}
    document = {**document, "required": {names[name]: verdict for name, verdict in document["required"].items()}}
    expected = [reason.replace(":a", ":" + names["a"]).replace(":b", ":" + names["b"]) for reason in reasons]
    flow = Flow(partitions=3, stages=("gate",), plan=plan)

    flow.send(TOPICS.candidates, document)
    await flow.settle()

    assert decisions(flow) == {"kp:trace:1": expected}
    assert {message.partition for message in flow.read(TOPICS.results)} == {partition_of(b"s", 3)}
    assert [(m.partition, m.key) for m in flow.read(TOPICS.network)] == (
        [] if reasons else [(partition_of(b"kp:trace:1", 3), b"kp:trace:1")]
    )
    counters = flow.counters("gate")
    assert (counters["consumed"], counters.get("accepted", 0), counters.get("rejected", 0)) == (
        1,
        not reasons,
        bool(reasons),
    )


async def test_secrets_and_identifiers_are_redacted_on_the_network_topic() -> None:
    flow = gate_only()
    objective = "Write to ann@example.org with sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL"
    flow.send(TOPICS.candidates, candidate(1, task={"objective": objective}))
    await flow.settle()

    (published,) = flow.read(TOPICS.network)
    assert b"ann@example.org" not in (published.value or b"")
    assert b"sk-abcdef" not in (published.value or b"")
    assert len(flow.results("gate")) == 1


async def test_names_are_redacted_and_a_trace_that_cannot_be_searched_is_rejected_alone() -> None:
    flow = gate_only({"presidio": {"model": "en_core_web_sm"}}, entities=KnownNames(max_chars=950))
    for number, objective in enumerate(("Book Kim Minsu a seat", "Kim Minsu " * 100, "To Seoul")):
        flow.send(TOPICS.candidates, candidate(number, task={"objective": objective}))
    await flow.settle()

    objectives = [orjson.loads(value or b"")["task"]["objective"] for _, value in network(flow)]
    assert objectives == ["Book [REDACTED:person] a seat", "To [REDACTED:location]"]
    assert decisions(flow)["kp:trace:1"] == ["too_long_for_presidio"]
    assert flow.counters("gate")["rejected.too_long_for_presidio"] == 1
    assert flow.dead_letters() == []


@pytest.mark.parametrize("name", ["kim@example.com", "010-1234-5678", "kp_0123456789abcdef"])
async def test_a_trace_with_a_secret_or_an_identifier_in_its_id_is_not_published(name: str) -> None:
    flow = gate_only()
    flow.send(TOPICS.candidates, candidate(name))
    flow.send(TOPICS.candidates, candidate("3f2a1010-4068-4295-9319-5d0c6f1b2a77"))
    await flow.settle()

    assert [key for key, _ in network(flow)] == [b"kp:trace:3f2a1010-4068-4295-9319-5d0c6f1b2a77"]
    assert list(decisions(flow).values()) == [["id_not_publishable"], []]
    assert flow.counters("gate")["rejected.id_not_publishable"] == 1


@pytest.mark.parametrize("pattern", ["id", "name", r"\d{4}-\d{2}-\d{2}", "[a-z]"])
async def test_a_pattern_of_the_config_ends_no_worker_and_publishes_no_invalid_trace(pattern: str) -> None:
    flow = gate_only({"redact": {"custom": pattern}})
    steps = [*trace()["steps"], {"step_id": 4, "type": "thought", "content": "idle name on 2026-01-31"}]
    flow.send(TOPICS.candidates, candidate(1, steps=steps))
    await flow.settle()

    assert flow.dead_letters() == []
    ((key, value),) = network(flow)
    assert key == b"kp:trace:1"
    published = ReasoningTrace.model_validate_json(value or b"")
    assert published.id == "kp:trace:1"
    assert "[REDACTED:custom]" in (published.steps[-1].content or "")


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"NaN", b"Infinity"])
async def test_a_number_that_json_does_not_know_does_not_reach_the_network(number: bytes) -> None:
    flow = gate_only()
    steps = [*trace()["steps"], {"step_id": 4, "type": "thought", "input": {"n": "@"}}]
    flow.send(TOPICS.candidates, orjson.dumps(candidate(1, steps=steps)).replace(b'"@"', number))
    flow.send(TOPICS.candidates, candidate(2))
    await flow.settle()

    assert [key for key, _ in network(flow)] == [b"kp:trace:2"]
    assert decisions(flow)["kp:trace:1"] == ["not_publishable"]
    assert flow.counters("gate")["rejected.not_publishable"] == 1


async def test_a_candidate_that_is_nested_too_deeply_is_unreadable() -> None:
    flow = gate_only()
    deep = orjson.dumps(candidate(1))[:-1] + b',"note":' + b"[" * 250 + b"]" * 250 + b"}"
    flow.send(TOPICS.candidates, deep)
    flow.send(TOPICS.candidates, candidate(2))
    await flow.settle()

    assert [(letter.reason, letter.offset) for letter in flow.dead_letters()] == [("unreadable_candidate", 0)]
    assert list(decisions(flow)) == ["kp:trace:2"]


async def test_a_candidate_with_rules_in_a_text_as_earlier_versions_wrote_is_a_dead_letter() -> None:
    flow = gate_only()
    record = {**candidate("t1"), "gate_rules": '{"digest":"d","gate":{"threshold":0.0}}'}
    flow.send(TOPICS.candidates, record)
    await flow.settle()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.detail) == ("unreadable_candidate", "gate_rules: Input should be an object")
    assert decisions(flow) == {}


async def test_a_long_candidate_with_a_key_twice_is_not_published() -> None:
    flow = gate_only()
    twice = b'"required":{"m":{"status":"NONE"},"m":{"status":"PASSED"}},"note":"' + b"x" * 5_000 + b'"}'
    document = {name: value for name, value in candidate(1).items() if name != "required"}
    flow.send(TOPICS.candidates, orjson.dumps(document)[:-1] + b"," + twice)
    flow.send(TOPICS.candidates, candidate(2))
    await flow.settle()

    assert decisions(flow) == {"kp:trace:1": ["not_publishable"], "kp:trace:2": []}
    assert [key for key, _ in network(flow)] == [b"kp:trace:2"]


async def test_an_accepted_trace_that_is_rejected_later_has_one_tombstone() -> None:
    flow = gate_only()
    for visibility in ("network", "private", "private", "network", "private"):
        flow.send(TOPICS.candidates, candidate(1, [1, 0], metadata={"visibility": visibility}))
    await flow.settle()
    together = network(flow)

    one_by_one = gate_only()
    for message in flow.logs[TOPICS.candidates, 0]:
        one_by_one.send(TOPICS.candidates, message.value)
        await one_by_one.settle()
        one_by_one.crash()

    assert [value is None for _, value in together] == [False, True, False, True]
    assert network(one_by_one) == together


@pytest.mark.parametrize("apart", [True, False])
async def test_a_trace_of_another_session_is_a_dead_letter_and_changes_nothing(apart: bool) -> None:
    flow = gate_only()
    for document in (candidate(1, [1, 0], "one"), candidate(1, [0, 1], "two"), candidate(2, [0, 1], "two")):
        flow.send(TOPICS.candidates, document)
        if apart:
            await flow.settle()
            flow.crash()
    await flow.settle()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.stage, letter.offset) == ("trace_id_conflict", "gate", 1)
    assert "one" in letter.detail
    assert "two" in letter.detail
    novelty = [score["details"]["novelty"] for score in flow.results("trace_value")]
    assert novelty == pytest.approx([0.5, 1.0])
    assert flow.counters("gate")["dead_lettered.trace_id_conflict"] == 1


BAD = {
    "not JSON": b"{",
    "empty": None,
    "no trace": orjson.dumps({**candidate(1), "trace": None}),
    "a vector of another length": orjson.dumps(candidate(1, [1, 0, 0])),
    "a vector that is not finite": orjson.dumps(candidate(1, [float("nan"), 0])),
    "a vector shorter than it says": orjson.dumps(
        {**candidate(1), "embedding": {"embedder": "e", "dimensions": 2, "data": "AAAA"}}
    ),
    "a vector that is no base64": orjson.dumps(
        {**candidate(1), "embedding": {"embedder": "e", "dimensions": 2, "data": "é"}}
    ),
}


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
async def test_an_unreadable_candidate_is_a_dead_letter_and_other_candidates_are_decided(value: bytes | None) -> None:
    flow = gate_only()
    flow.send(TOPICS.candidates, candidate(8, [1, 0]))
    flow.send(TOPICS.candidates, value, b"key")
    flow.send(TOPICS.candidates, candidate(9, [0, 1]))
    await flow.settle()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.stage, letter.key) == ("unreadable_candidate", "gate", b"key")
    assert list(decisions(flow)) == ["kp:trace:8", "kp:trace:9"]


def log_of(count: int, scopes: int, seed: int = 7) -> list[dict[str, Any]]:
    """Returns candidates with repeats, revisions, changing scopes, and some without an embedding."""
    random = np.random.default_rng(seed)
    log = []
    for number in range(count):
        vector = None if random.random() < 0.1 else [float(x) for x in random.normal(size=6)]
        again = number > 5 and random.random() < 0.3
        trace_number = int(random.integers(number)) if again else number
        session = f"s{trace_number % 5}" if random.random() < 0.9 else "thief"
        scope = f"{int(random.integers(scopes))}@e"
        changes = {"outcome": {"confidence": float(random.uniform(0.6, 1))}}
        log.append(candidate(trace_number, vector, session, scope, **changes))
    return log


async def decided(gate: Mapping[str, Any], log: Sequence[Mapping[str, Any]], batch: int, crash: bool) -> list[Any]:
    flow = gate_only(gate)
    for document in log:
        flow.send(TOPICS.candidates, document)
    while await flow.take(TOPICS.candidates, batch):
        flow.checkpoint()
        if crash:
            flow.crash()
    written = [m.json for m in flow.read(TOPICS.results)]
    written += [[letter.reason, letter.offset] for letter in flow.dead_letters()]
    written += [[m.key.decode() if m.key else "", m.value and m.json] for m in flow.read(TOPICS.network)]
    return written


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gate", "scopes"),
    [
        ({}, 2),
        ({"cache_size": 4}, 2),
        ({"max_scopes": 2}, 4),
        ({"cache_size": 3, "max_scopes": 2}, 3),
        ({"max_scopes": 4}, 6),
    ],
)
async def test_decisions_do_not_depend_on_batches_and_restarts(gate: dict[str, Any], scopes: int) -> None:
    gate = {"threshold": 0.8, **gate}
    log = log_of(120, scopes)

    one_by_one = await decided(gate, log, 1, crash=False)

    assert await decided(gate, log, 120, crash=False) == one_by_one
    assert await decided(gate, log, 7, crash=False) == one_by_one
    assert await decided(gate, log, 7, crash=True) == one_by_one


async def test_the_least_recently_used_scope_is_dropped_with_all_its_rows() -> None:
    flow = gate_only({"max_scopes": 2})
    for number, scope in enumerate(["a", "b", "a", "c", "a", "b"]):  # Scope c drops b, and the second b drops c.
        flow.send(TOPICS.candidates, candidate(number, [1, 0], scope=scope))
        await flow.settle()
        flow.crash()

    nearest = [score["details"].get("nearest", {}).get("trace_id") for score in flow.results("trace_value")]
    assert nearest == [None, None, "kp:trace:0", None, "kp:trace:0", None]
    kinds = sorted(key[5:6] for key in flow.rows(b"gate/") if key != b"gate/#")
    assert kinds == sorted([b"s", b"s", *[b"v"] * 4, *[b"t"] * 4])  # Scope a has three traces, scope b has one.


@pytest.mark.parametrize("traces_each", [1, 10])
async def test_invented_task_domains_push_out_no_established_scope(traces_each: int) -> None:
    flow = gate_only({"max_scopes": 10})
    for number in range(20):
        flow.send(TOPICS.candidates, candidate(f"real-{number}", [1, 0], scope="travel@e"))
    for number in range(20 * traces_each):
        scope = f"invented-{number // traces_each}@e"
        flow.send(TOPICS.candidates, candidate(f"invented-{number}", [1, 0], scope=scope))
    flow.send(TOPICS.candidates, candidate("real-20", [1, 0], scope="travel@e"))
    await flow.settle()

    assert flow.results("trace_value")[-1]["details"]["nearest"]["trace_id"] == "kp:trace:real-0"
    assert len(flow.rows(b"gate/s")) == 10


async def test_a_scope_has_as_many_rows_as_its_cache_and_a_batch_writes_only_what_changed() -> None:
    flow = gate_only({"cache_size": 10})
    for number in range(100):
        flow.send(TOPICS.candidates, candidate(number, [1, number]))
    await flow.settle()
    flow.table.written.clear()
    flow.send(TOPICS.candidates, candidate(100, [0, 1]))
    await flow.settle()

    assert len(flow.rows(b"gate/v")) == len(flow.rows(b"gate/t")) == 10
    assert sorted(key[:6] for key, _ in flow.table.written) == [b"checkp", b"gate/#", b"gate/s", b"gate/t", b"gate/v"]


async def test_a_candidate_of_an_earlier_revision_than_the_decided_one_is_superseded() -> None:
    flow = gate_only({"threshold": 0.6})
    later = {**candidate(1, [0, 1]), "revision": 2}
    flow.send(TOPICS.candidates, candidate(2, [1, 0]))
    flow.send(TOPICS.candidates, later)
    await flow.settle()
    flow.crash()
    before, rows = network(flow), flow.rows(b"gate/v")
    flow.send(TOPICS.candidates, {**candidate(1, [1, 0], outcome={"confidence": 0.0}), "revision": 1})
    await flow.settle()

    assert [(s["revision"], s["details"]["reasons"]) for s in flow.results("gate")[1:]] == [
        (2, []),
        (1, ["superseded"]),
    ]
    assert flow.results("trace_value")[-1]["details"]["novelty_missing"] == "superseded"
    assert (network(flow), flow.rows(b"gate/v")) == (before, rows)
    counters = flow.counters("gate")
    assert (counters["consumed"], counters["accepted"], counters["rejected"], counters["rejected.superseded"]) == (
        3,
        2,
        1,
        1,
    )
    flow.send(TOPICS.candidates, {**candidate(1, [1, 0], outcome={"confidence": 0.0}), "revision": 3})
    await flow.settle()
    assert network(flow)[-1] == (b"kp:trace:1", None)


async def test_a_candidate_of_an_earlier_attempt_than_the_decided_one_is_superseded() -> None:
    flow = gate_only({"threshold": 0.6})
    flow.send(TOPICS.candidates, {**candidate(1, [0, 1]), "attempt": 2})
    await flow.settle()
    flow.crash()
    before = network(flow)
    for attempt in (1, 0, 3):
        flow.send(TOPICS.candidates, {**candidate(1, [1, 0], outcome={"confidence": 0.0}), "attempt": attempt})
    await flow.settle()

    found = [(score["revision"], score["attempt"], score["details"]["reasons"]) for score in flow.results("gate")]
    assert found == [(0, 2, []), (0, 1, ["superseded"]), (0, 0, ["superseded"]), (0, 3, ["below_threshold"])]
    assert network(flow) == [*before, (b"kp:trace:1", None)]


@pytest.mark.parametrize("later", [{"attempt": 1}, {"revision": 1}, {"segment": 1}])
async def test_a_rejected_later_version_has_a_tombstone_even_if_its_scope_forgot_the_trace(
    later: Mapping[str, int],
) -> None:
    flow = gate_only()
    flow.send(TOPICS.candidates, {**candidate(1, metadata={"visibility": "org"}), **later})
    await flow.settle()
    assert network(flow) == [(b"kp:trace:1", None)]


async def test_the_row_of_a_decision_contains_the_attempt_only_if_it_is_above_0() -> None:
    flow = gate_only()
    flow.send(TOPICS.candidates, candidate(1))
    flow.send(TOPICS.candidates, {**candidate(2), "attempt": 1})
    await flow.settle()
    rows = sorted(orjson.loads(row) for row in flow.rows(b"gate/t").values())
    assert rows == [["kp:trace:1", "s", True, 0, 0, 0], ["kp:trace:2", "s", True, 1, 0, 0, 1]]


async def test_rows_of_the_previous_format_are_read() -> None:
    flow = gate_only({"threshold": 0.6})
    flow.send(TOPICS.candidates, candidate(1, [0, 1]))
    await flow.settle()
    ((key, row),) = flow.rows(b"gate/t").items()
    flow.table.write(0, [(key, orjson.dumps(orjson.loads(row)[:4]))])
    flow.crash()
    flow.send(TOPICS.candidates, {**candidate(1, [0, 1], outcome={"confidence": 0.0}), "revision": 1})
    await flow.settle()

    assert network(flow)[-1] == (b"kp:trace:1", None)


OTEL = f"{'a' * 32}:{'b' * 16}"
WITHDRAWN = {"withdrawn": True, "visibility": "private", "privacy_level": "private"}


def values(flow: Flow) -> dict[tuple[str, int], tuple[str, float | None]]:
    """Returns status and novelty of each trace value, by trace and revision."""
    return {
        (score["trace_id"], score["revision"]): (score["status"], score["details"].get("novelty"))
        for score in flow.results("trace_value")
    }


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
@pytest.mark.parametrize("together", [True, False])
async def test_a_trace_that_moves_to_another_session_is_no_copy_of_itself(order: list[int], together: bool) -> None:
    flow = gate_only()
    former = candidate(OTEL, [1, 0], session="a" * 32)
    gone = candidate(OTEL, [1, 1], session="a" * 32, metadata=WITHDRAWN) | {"revision": 1}
    there = candidate(f"{OTEL}~2", [1, 0], session="s")
    flow.send(TOPICS.candidates, candidate(1, [0, 1]))
    for place in order:
        flow.send(TOPICS.candidates, (former, gone, there)[place])
        if not together:
            await flow.settle()
            flow.crash()
    flow.send(TOPICS.candidates, candidate(2, [1, 0]))
    await flow.settle()

    assert flow.dead_letters() == []
    assert values(flow)[f"kp:trace:{OTEL}~2", 0] == ("PASSED", 1.0)
    assert values(flow)["kp:trace:2", 0][1] == 0.0
    assert values(flow)[f"kp:trace:{OTEL}", 1] == ("NOT_EVALUATED", None)
    assert decisions(flow)[f"kp:trace:{OTEL}"] == ["withdrawn"]
    shown = dict(network(flow))
    assert {key for key, value in shown.items() if value is not None} == {
        b"kp:trace:1",
        f"kp:trace:{OTEL}~2".encode(),
    }


async def test_another_id_with_the_same_ending_is_compared_with_its_copy() -> None:
    flow = gate_only()
    flow.send(TOPICS.candidates, candidate("x", [1, 0]))
    flow.send(TOPICS.candidates, candidate("x~2", [1, 0]))
    await flow.settle()

    assert values(flow)["kp:trace:x~2", 0][1] == 0.0


async def test_a_copy_with_the_id_of_a_moved_trace_is_compared_with_a_trace_in_a_named_session() -> None:
    flow = gate_only()
    flow.send(TOPICS.candidates, candidate(OTEL, [1, 0], session="named"))
    await flow.settle()
    flow.send(TOPICS.candidates, candidate(f"{OTEL}~2", [1, 0], session="other"))
    await flow.settle()

    assert values(flow)[f"kp:trace:{OTEL}~2", 0][1] == 0.0
