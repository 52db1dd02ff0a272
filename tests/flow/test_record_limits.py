"""What does not fit a topic becomes a dead letter with the reason, whichever stage writes it."""

from __future__ import annotations

from tests.support.collect import collect_only, complete, request, span, trace_id
from tests.support.flow import TOPICS, assemble_only
from tests.support.judge_retries import session

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.stages.record_limits import SMALLEST_BATCH_BYTES
from traceweir.streams.testing import Flow, event, trace

SMALL = SMALLEST_BATCH_BYTES
LONG = "s" * 1_000
CONFIG = b'{"criteria": {"response_match_score": 0.5}}'


def limit(flow: Flow, topic: str, batch_bytes: int = SMALL) -> Flow:
    """Lets a topic accept smaller batches only, which the worker learns at its next takeover."""
    flow.limits.learn({topic: batch_bytes})
    for partition in range(flow.partitions):
        flow.crash(partition)
    return flow


def send_trace(flow: Flow, session: str, size: int) -> None:
    flow.send(TOPICS.traces, trace(session, session, outcome={"result_summary": "x" * size}), session.encode())


def send_events(flow: Flow, session: str, count: int, size: int) -> None:
    for number in range(count):
        value = event("model.called", session, event_id=f"{session}{number}", ballast="x" * size)
        flow.send(TOPICS.invocations, value, session.encode())


def letters(flow: Flow) -> list[tuple[str, str, str]]:
    return [(letter.stage, letter.reason, letter.topic) for letter in flow.dead_letters()]


async def test_a_session_whose_score_does_not_fit_is_a_dead_letter_and_its_neighbour_is_scored() -> None:
    flow = limit(Flow(stages=("score",), plan=read_plan(CONFIG)), TOPICS.results, 1_500)
    for name in (LONG, "small"):
        flow.send(TOPICS.sessions, session(name), name.encode())
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.stage, letter.reason, letter.topic, letter.key) == (
        "score",
        "too_large",
        TOPICS.sessions,
        LONG.encode(),
    )
    assert "does not fit the topic traceweir.results, whose max.message.bytes or segment.bytes is 1500" in letter.detail
    assert {score["session_id"] for score in flow.results()} == {"small"}
    counters = flow.counters("score")
    assert counters["consumed"] == counters["scored"] + counters["dead_lettered.too_large"] == 2


async def test_a_session_whose_candidate_does_not_fit_is_a_dead_letter_and_its_neighbour_is_scored() -> None:
    flow = limit(Flow(stages=("assemble", "score")), TOPICS.candidates)
    send_trace(flow, "large", 100_000)
    send_trace(flow, "small", 100)
    await flow.finish()

    assert letters(flow) == [("score", "too_large", TOPICS.sessions)]
    assert {message.json["session_id"] for message in flow.read(TOPICS.candidates)} == {"small"}


async def test_a_trace_that_does_not_fit_network_is_rejected_with_this_reason() -> None:
    flow = limit(Flow(), TOPICS.network)
    send_trace(flow, "large", 100_000)
    send_trace(flow, "small", 100)
    await flow.finish()

    assert flow.dead_letters() == []
    reasons = {score["session_id"]: score["details"]["reasons"] for score in flow.results("gate")}
    assert "too_large" in reasons["large"]
    assert "too_large" not in reasons["small"]


async def test_a_candidate_whose_decision_does_not_fit_results_is_a_dead_letter_and_counts_as_no_decision() -> None:
    flow = limit(Flow(), TOPICS.results, 2_000)
    send_trace(flow, LONG, 100)
    send_trace(flow, "small", 100)
    await flow.finish()

    assert letters(flow) == [("gate", "too_large", TOPICS.candidates)]
    counters = flow.counters("gate")
    assert counters["consumed"] == counters["dead_lettered.too_large"] + len(flow.results("gate")) == 2
    assert counters.get("accepted", 0) + counters.get("rejected", 0) == 1


async def test_a_session_closes_early_enough_to_fit_its_topic() -> None:
    flow = limit(assemble_only(), TOPICS.sessions)
    send_events(flow, "s", 10, 10_000)
    await flow.finish()

    assert flow.dead_letters() == []
    sizes = [len(message.value or b"") for message in flow.read(TOPICS.sessions)]
    assert max(sizes) < SMALL < sum(sizes)
    assert [item["event_id"] for session in flow.sessions() for item in session["events"]] == [
        f"s{n}" for n in range(10)
    ]


async def test_an_open_session_that_does_not_fit_any_more_is_set_aside_and_its_neighbours_are_published() -> None:
    flow = assemble_only()
    send_events(flow, "large", 5, 30_000)
    send_events(flow, "small", 1, 100)
    await flow.settle()
    limit(flow, TOPICS.sessions)
    await flow.finish()

    assert [session["session_id"] for session in flow.sessions()] == ["small"]
    assert letters(flow) == [("assemble", "too_large", TOPICS.invocations)] * 5
    assert f"does not fit the topic {TOPICS.sessions}" in flow.dead_letters()[0].detail
    counters = flow.counters("assemble")
    assert counters["consumed"] == counters["joined"] + counters["dead_lettered.too_large"] == 6
    assert counters["opened"] == counters["closed"] == 1

    for letter in flow.dead_letters():
        flow.send(letter.topic, letter.value, letter.key)
    await flow.finish()
    assert sum(len(session["events"]) for session in flow.sessions()) == 6


async def test_an_event_of_a_trace_that_does_not_fit_is_a_dead_letter_and_the_others_are_published() -> None:
    flow = limit(collect_only(), TOPICS.invocations)
    tools = span(1, 1, 0, more={"gen_ai.tool.call.result": "x" * 100_000}), span(1, 2, 0)
    flow.send(TOPICS.otlp_spans, request(*tools, span(1, 0, session="s")))
    await complete(flow)

    assert letters(flow) == [("collect", "too_large", TOPICS.invocations)]
    (letter,) = flow.dead_letters()
    assert f"a record of {TOPICS.invocations} can have at most" in letter.detail
    assert letter.value is not None
    assert len(letter.value) > 100_000, "a replay cannot find the record of a letter without an offset"
    assert flow.read(TOPICS.invocations)


async def test_a_span_that_does_not_fit_its_way_to_its_home_is_named_in_a_dead_letter_and_the_others_arrive() -> None:
    flow = limit(collect_only(partitions=2), TOPICS.spans)
    number = next(each for each in range(1, 99) if partition_of(trace_id(each), 2) == 1)
    small, root = span(number, 2, 0), span(number, 0, session="s")
    flow.send(TOPICS.otlp_spans, request(span(number, 1, 0, more={"text": "x" * 100_000}), small, root), partition=0)
    await complete(flow)

    (letter,) = flow.dead_letters()
    assert (letter.stage, letter.reason, letter.topic) == ("collect", "too_large", TOPICS.otlp_spans)
    assert f"does not fit the topic {TOPICS.spans}" in letter.detail
    assert flow.counters("collect")["forwarded"] == 2
    assert flow.counters("collect")["spans"] == 2


async def test_a_dead_letter_is_cut_to_what_its_topic_takes() -> None:
    flow = limit(assemble_only(), TOPICS.dead_letters)
    flow.send(TOPICS.traces, b"x" * 500_000, b"k", headers=[("id", b"7")])
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.size, letter.key, list(letter.headers)) == ("not_json", 500_000, b"k", [("id", b"7")])
    assert 60_000 < len(letter.value or b"") < SMALL


async def test_a_stray_that_does_not_fit_is_a_dead_letter() -> None:
    flow = limit(assemble_only(partitions=2), TOPICS.strays)
    away = 1 - partition_of(b"s", 2)
    flow.send(TOPICS.invocations, event(session_id="s", event_id="large", ballast="x" * SMALL), partition=away)
    flow.send(TOPICS.invocations, event(session_id="s", event_id="small"), partition=away)
    await flow.finish()

    assert letters(flow) == [("assemble", "too_large", TOPICS.invocations)]
    assert [item["event_id"] for session in flow.sessions() for item in session["events"]] == ["small"]
    counters = flow.counters("assemble")
    assert counters["consumed"] == counters["joined"] + counters["forwarded"] + counters["dead_lettered.too_large"] == 3
