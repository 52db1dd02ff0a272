"""A recorder writes what the agent does, in order and in one session, and changes nothing of the agent."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.fake_transport import FakeTransport
from traceweir.client import Dimensions, QueueLimits, ReasoningTraces, Recorder
from traceweir.client.clock import RisingClock
from traceweir.client.contexts import described


class Agent:
    """A recorder whose events a test reads back."""

    def __init__(self, *dimensions: Dimensions, **options: Any) -> None:
        self.transport = FakeTransport()
        self.recorder = Recorder("", *dimensions, connect=lambda: self.transport, **options)

    def events(self) -> list[dict[str, Any]]:
        assert self.recorder.flush(10)
        return self.transport.documents()

    def told(self, *keys: str) -> list[tuple[Any, ...]]:
        """Returns the type of each event and some of its fields."""
        return [(event["type"], *(event.get(key) for key in keys)) for event in self.events()]


@pytest.fixture
def agent() -> Iterator[Agent]:
    made = Agent()
    yield made
    made.recorder.close(10)


def text(content: dict[str, Any]) -> str:
    return str(content["parts"][0]["text"])


def test_a_call_id_that_the_agent_repeats_is_given_once(agent: Agent) -> None:
    with agent.recorder.invocation("q") as turn:
        for number in (1, 2):
            with agent.recorder.tool("find", {"number": number}, call_id="call_0") as call:
                call.result = number
        turn.answer = "a"
    called = [event for event in agent.events() if event["type"] == "tool.called"]
    results = {event["call_id"]: event["response"] for event in agent.events() if event["type"] == "tool.returned"}
    assert called[0]["call_id"] == "call_0"
    assert [results[each["call_id"]] for each in called] == [each["args"]["number"] for each in called] == [1, 2]


async def test_a_task_that_outlives_its_turn_adds_no_step_to_it(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    recorder, is_over = agent.recorder, asyncio.Event()

    async def outlive() -> None:
        with recorder.tool("begun before the end") as call:
            await is_over.wait()
            call.result = "late"
        with recorder.tool("begun after the end"):
            pass
        with recorder.model_call("m"):
            pass

    async with recorder.invocation("q") as turn:
        task = asyncio.create_task(outlive())
        await asyncio.sleep(0)
        turn.answer = "a"
    is_over.set()
    await task
    turn.said("too late")
    turn.retrieved(["too late"])
    with turn.tool("too late"):
        pass
    assert agent.told("name", "response")[1:] == [
        ("tool.called", "begun before the end", None),
        ("invocation.completed", None, None),
        ("session.ended", None, None),
        ("tool.returned", "begun before the end", "late"),
    ]
    assert "a ToolCallBlock after the end of its invocation is not recorded" in caplog.text


async def test_a_turn_that_begins_in_a_task_of_an_ended_turn_is_a_turn_of_the_session(agent: Agent) -> None:
    recorder, is_over = agent.recorder, asyncio.Event()

    async def outlive() -> None:
        await is_over.wait()
        with recorder.invocation("second") as turn:
            turn.answer = "of the second"

    async with recorder.session("chat"):
        async with recorder.invocation("first") as turn:
            task = asyncio.create_task(outlive())
            turn.answer = "of the first"
        is_over.set()
        await task
    events = agent.events()
    answers = [text(event["final_response"]) for event in events if event["type"] == "invocation.completed"]
    assert answers == ["of the first", "of the second"]
    assert {event["session_id"] for event in events} == {"chat"}


def test_a_generator_that_is_left_open_keeps_the_next_turn_a_turn(agent: Agent) -> None:
    def stream() -> Iterator[str]:
        with agent.recorder.invocation("first") as turn:
            yield "a chunk"
            turn.answer = "never"

    left = stream()
    next(left)
    closing = threading.Thread(target=left.close)  # type: ignore[attr-defined]  # a generator
    closing.start()  # in a context of its own, so that the place of the code here stays inside the turn
    closing.join()
    with agent.recorder.invocation("second") as turn:
        turn.answer = "an answer"
    assert [text(e["user_content"]) for e in agent.events() if "user_content" in e] == ["first", "second"]


def test_a_turn_is_written_in_order(agent: Agent) -> None:
    recorder = agent.recorder
    with recorder.session("chat", user_id="ada"), recorder.invocation("When?") as turn:
        with recorder.tool("find", {"number": 12}, call_id="c1") as call:
            call.result = {"leaves": "09:40"}
        with recorder.model_call("gemini-2.5-flash") as model:
            model.input_tokens, model.output_tokens = 120, 18
        turn.said("Let me look.")
        turn.retrieved(["a page", {"content": "another", "doc_uri": "https://a/b"}])
        turn.answer = "At 09:40."
    events = agent.events()
    assert [event["type"] for event in events] == [
        "invocation.started",
        "tool.called",
        "tool.returned",
        "model.called",
        "response.intermediate",
        "retrieval.returned",
        "invocation.completed",
    ]
    started, called, returned, model_called, said, retrieved, completed = events
    assert started["user_content"] == {"parts": [{"text": "When?"}], "role": "user"}
    assert (called["name"], called["call_id"], called["args"]) == ("find", "c1", {"number": 12})
    assert (returned["name"], returned["call_id"], returned["response"]) == ("find", "c1", {"leaves": "09:40"})
    assert (model_called["model"], model_called["input_tokens"], model_called["output_tokens"]) == (
        "gemini-2.5-flash",
        120,
        18,
    )
    assert text(said["content"]) == "Let me look."
    assert retrieved["chunks"] == [
        {"doc_uri": None, "content": "a page"},
        {"doc_uri": "https://a/b", "content": "another"},
    ]
    assert (text(completed["final_response"]), completed["model"]) == ("At 09:40.", "gemini-2.5-flash")
    assert {event["session_id"] for event in events} == {"chat"}
    assert {event["user_id"] for event in events} == {"ada"}
    assert len({event["invocation_id"] for event in events}) == 1
    assert len({event["event_id"] for event in events}) == len(events)
    times = [event["occurred_at"] for event in events]
    assert times == sorted(set(times))
    assert all(time.endswith("Z") for time in times)
    assert not any("missing" in event for event in events)
    assert {key for _, key, _ in agent.transport.records} == {b"chat"}


def test_an_exception_in_a_tool_is_recorded_and_raised_unchanged(agent: Agent) -> None:
    error = KeyError("flight 12")
    with agent.recorder.invocation("q"):
        with pytest.raises(KeyError) as raised, agent.recorder.tool("find"):
            raise error
        assert raised.value is error
        assert raised.value.__cause__ is None
    assert agent.told("error")[2] == ("tool.returned", "KeyError: 'flight 12'")


def test_a_tool_can_report_its_error_without_an_exception(agent: Agent) -> None:
    with agent.recorder.invocation("q"), agent.recorder.tool("find") as call:
        call.error = "not found"
    assert agent.told("error", "missing")[2] == ("tool.returned", "not found", None)


def test_an_invocation_that_raises_has_no_answer_and_misses_none(agent: Agent) -> None:
    with pytest.raises(SystemExit), agent.recorder.invocation("q"):
        raise SystemExit(3)
    completed = agent.events()[1]
    assert (completed["type"], "final_response" in completed, "missing" in completed) == (
        "invocation.completed",
        False,
        False,
    )


def test_what_the_agent_does_not_tell_is_said_to_be_missing(agent: Agent) -> None:
    with agent.recorder.invocation(), agent.recorder.tool("find"):
        pass
    assert [event["missing"] for event in agent.events() if "missing" in event] == [
        ["the question is not recorded: pass it to `invocation`"],
        ["the result of the call of tool 'find' is not recorded: set `result` of the tool"],
        ["the answer is not recorded: set `answer` of the invocation"],
    ]


def test_a_part_of_a_value_stands_for_no_whole_value(agent: Agent) -> None:
    with agent.recorder.invocation("x" * 200_000) as turn:
        with agent.recorder.tool("find", {"number": float("nan")}) as call:
            call.result = [object(), 1]
        turn.answer = {"leaves": "09:40"}
    started, called, returned, completed, _ = agent.events()
    assert "user_content" not in started
    assert started["missing"] == ["the question is not complete: it has more than 100000 characters"]
    assert called["args"] is None
    assert called["missing"] == [
        "the arguments of the call of tool 'find' are not recorded: a number is NaN or infinite"
    ]
    assert returned["response"] == ["<object>", 1]
    assert returned["missing"] == [
        "the result of the call of tool 'find' is not complete: an object has no form in JSON"
    ]
    assert text(completed["final_response"]) == '{"leaves":"09:40"}'


def test_arguments_are_those_of_the_moment_of_the_call(agent: Agent) -> None:
    args: dict[str, Any] = {"seats": [1]}
    with agent.recorder.invocation("q"), agent.recorder.tool("book", args) as call:
        args["seats"].append(2)
        call.result = args
    assert agent.told("args", "response")[1:3] == [
        ("tool.called", {"seats": [1]}, None),
        ("tool.returned", None, {"seats": [1, 2]}),
    ]


def test_calls_of_one_answer_of_the_model_can_say_so(agent: Agent) -> None:
    with agent.recorder.invocation("q") as turn:
        with agent.recorder.tool("find", model_call_id="answer-1"), turn.tool("book", model_call_id="answer-1"):
            pass
        with agent.recorder.tool("pay"):
            pass
    called = [event for event in agent.events() if event["type"] == "tool.called"]
    assert [event.get("model_call_id") for event in called] == ["answer-1", "answer-1", None]


def test_a_sub_agent_belongs_to_the_turn_around_it(agent: Agent) -> None:
    recorder = agent.recorder
    with recorder.invocation("q") as turn:
        with recorder.invocation("find it", agent_name="searcher") as sub:
            with recorder.tool("search") as call:
                call.result = "page"
            sub.answer = "found"
        turn.answer = "done"
    events = agent.events()
    assert [event["type"] for event in events] == [
        "invocation.started",
        "tool.called",
        "tool.returned",
        "response.intermediate",
        "invocation.completed",
        "session.ended",
    ]
    assert (events[3]["author"], text(events[3]["content"])) == ("searcher", "found")
    assert {event["invocation_id"] for event in events[:-1]} == {turn.id}


def test_a_tool_in_a_tool_belongs_to_the_same_turn(agent: Agent) -> None:
    with agent.recorder.invocation("q"), agent.recorder.tool("outer") as outer:
        with agent.recorder.tool("inner") as inner:
            inner.result = 1
        outer.result = 2
    assert agent.told("name")[1:5] == [
        ("tool.called", "outer"),
        ("tool.called", "inner"),
        ("tool.returned", "inner"),
        ("tool.returned", "outer"),
    ]


async def test_tasks_at_the_same_time_keep_their_turns(agent: Agent) -> None:
    both = asyncio.Barrier(2)

    async def turn(name: str) -> None:
        async with agent.recorder.invocation(name, session_id=name) as invocation:
            await both.wait()
            async with agent.recorder.tool(name) as call:
                await both.wait()
                call.result = name
            invocation.answer = name

    await asyncio.gather(turn("a"), turn("b"))
    for name in ("a", "b"):
        events = [event for event in agent.events() if event["session_id"] == name]
        assert [event.get("name") for event in events] == [None, name, name, None]


async def test_parallel_tools_of_a_turn_belong_to_it(agent: Agent) -> None:
    async def call(name: str) -> None:
        async with agent.recorder.tool(name) as tool:
            tool.result = await asyncio.to_thread(work, name)

    def work(name: str) -> str:
        with agent.recorder.tool(f"{name}-inner") as tool:
            tool.result = name
        return name

    async with agent.recorder.invocation("q", session_id="s") as turn:
        await asyncio.gather(call("a"), call("b"))
    events = agent.events()
    assert {event["invocation_id"] for event in events} == {turn.id}
    called = {event["call_id"]: event["name"] for event in events if event["type"] == "tool.called"}
    returned = {event["call_id"]: event["name"] for event in events if event["type"] == "tool.returned"}
    assert called == returned
    assert sorted(called.values()) == ["a", "a-inner", "b", "b-inner"]


def test_other_threads_use_the_turn_itself(agent: Agent) -> None:
    with agent.recorder.session("s") as session, session.invocation("q") as turn:

        def work(number: int) -> None:
            with turn.tool(f"tool {number}") as call, turn.model_call("m"):
                call.result = number

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(20)))
        turn.answer = "done"
    events = agent.events()
    assert {(event["session_id"], event["invocation_id"]) for event in events} == {("s", turn.id)}
    assert sum(event["type"] == "tool.returned" for event in events) == 20


async def test_a_stream_that_is_left_early_ends_its_turn(agent: Agent) -> None:
    async def stream() -> AsyncIterator[str]:
        async with agent.recorder.invocation("q", session_id="s") as turn:
            turn.answer = "part"
            yield "part"
            yield "never read"

    chunks = stream()
    await asyncio.create_task(anext(chunks))  # type: ignore[arg-type]  # an async generator's anext is a coroutine
    await chunks.aclose()  # type: ignore[attr-defined]  # AsyncIterator hides that it is a generator
    assert agent.told()[-1] == ("invocation.completed",)


def test_a_cancelled_tool_is_an_error(agent: Agent) -> None:
    async def work() -> None:
        with agent.recorder.tool("wait"):
            raise asyncio.CancelledError

    async def main() -> None:
        async with agent.recorder.invocation("q", session_id="s"):
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(work())

    asyncio.run(main())
    assert agent.told("error")[2] == ("tool.returned", "CancelledError")


def test_a_session_without_an_id_ends_with_its_block(agent: Agent) -> None:
    with agent.recorder.session() as session:
        for _ in range(2):
            with agent.recorder.invocation("q"):
                pass
    events = agent.events()
    assert [event["type"] for event in events][-1] == "session.ended"
    assert {event["session_id"] for event in events} == {session.id}


def test_a_session_with_an_id_ends_when_the_agent_says_so(agent: Agent) -> None:
    with agent.recorder.session("s") as session, agent.recorder.invocation("q"):
        pass
    assert "session.ended" not in {event["type"] for event in agent.events()}
    session.end()
    assert agent.events()[-1]["type"] == "session.ended"


@pytest.mark.parametrize(("options", "traces"), [({}, 0), ({"traces": ReasoningTraces("shop")}, 2)])
def test_the_end_of_a_session_says_how_many_records_it_has(options: dict[str, Any], traces: int) -> None:
    agent = Agent(**options)
    with agent.recorder.session():
        for _ in range(2):
            with agent.recorder.invocation("q") as turn, agent.recorder.tool("find"):
                turn.answer = "a"
    events = agent.events()
    assert len(agent.transport.documents("traceweir.traces")) == traces
    assert events[-1]["expects"] == {"events": len(events), "traces": traces}
    agent.recorder.close(10)


def test_a_session_that_ends_within_a_turn_does_not_say_how_many_records_it_has(agent: Agent) -> None:
    with agent.recorder.session("s") as session, agent.recorder.invocation("q"):
        session.end()
    (end,) = [each for each in agent.events() if each.get("type") == "session.ended"]
    assert "expects" not in end


def test_a_tool_outside_of_an_invocation_is_logged_and_runs(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    with agent.recorder.tool("find") as call:
        call.result = 1
    assert agent.events() == []
    assert "a ToolCallBlock outside of an invocation is not recorded" in caplog.text


def test_a_block_is_recorded_once(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    call = agent.recorder.tool("find")
    with agent.recorder.invocation("q", session_id="s"):
        with call:
            pass
        with call:
            pass
    assert len([kind for (kind,) in agent.told() if kind == "tool.called"]) == 1
    assert "the same ToolCallBlock was entered twice" in caplog.text


@pytest.mark.parametrize("nested", [True, False])
def test_an_invocation_that_is_entered_twice_ends_once_with_its_outermost_block(nested: bool, agent: Agent) -> None:
    turn = agent.recorder.invocation("When?", invocation_id="1")
    with agent.recorder.session("chat"), turn:
        if nested:
            with turn:
                pass
            with agent.recorder.tool("find"):
                pass
    if not nested:
        with agent.recorder.session("chat"), turn:
            pass

    calls = [("tool.called",), ("tool.returned",)] if nested else []
    assert agent.told() == [("invocation.started",), *calls, ("invocation.completed",)]


def test_a_decorated_function_is_a_tool(agent: Agent) -> None:
    @agent.recorder.record_tool
    def book(seat: int, *, day: str = "Monday") -> str:
        """Books."""
        return f"{seat} {day}"

    with agent.recorder.invocation("q"):
        assert book(3, day="Tuesday") == "3 Tuesday"
        with pytest.raises(TypeError, match="missing 1 required"):
            book()  # type: ignore[call-arg]  # the error is the claim
    assert (book.__name__, book.__doc__) == ("book", "Books.")
    assert agent.told("name", "args", "response")[1:3] == [
        ("tool.called", "book", {"seat": 3, "day": "Tuesday"}, None),
        ("tool.returned", "book", None, "3 Tuesday"),
    ]


async def test_a_decorated_coroutine_function_is_a_tool(agent: Agent) -> None:
    @agent.recorder.record_tool
    async def find(number: int) -> int:
        await asyncio.to_thread(threading.get_ident)
        return number + 1

    async with agent.recorder.invocation("q"):
        assert await find(1) == 2
    assert agent.told("args", "response")[1:3] == [("tool.called", {"number": 1}, None), ("tool.returned", None, 2)]


def test_the_dimensions_are_on_every_event() -> None:
    agent = Agent(
        Dimensions(
            app_name="desk",
            agent_name="booker",
            agent_version="1.4",
            environment="production",
            labels={"team": "a", "region": "eu"},
            sampling_probability=0.5,
        )
    )
    with agent.recorder.session("s", user_id="ada", labels={"team": "b"}), agent.recorder.invocation("q"):
        pass
    expected = {
        "app_name": "desk",
        "agent_name": "booker",
        "agent_version": "1.4",
        "environment": "production",
        "user_id": "ada",
        "labels": {"team": "b", "region": "eu"},
        "sampling_probability": 0.5,
    }
    for event in agent.events():
        assert {name: event[name] for name in expected} == expected
        assert event["started_at"] <= event["occurred_at"]
        assert "trace_context" not in event


def test_dimensions_beyond_their_bounds_are_cut() -> None:
    agent = Agent(Dimensions(app_name="x" * 1_000, labels={f"l{number}": "v" * 1_000 for number in range(20)}))
    with agent.recorder.invocation("q", sampling_probability=7):
        pass
    event = agent.events()[0]
    assert event["app_name"] == "x" * 256
    assert event["labels"] == {f"l{number}": "v" * 256 for number in range(8)}
    assert "sampling_probability" not in event


def test_a_task_domain_adds_a_reasoning_trace() -> None:
    agent = Agent(Dimensions(agent_name="booker"), traces=ReasoningTraces("travel"))
    with agent.recorder.invocation("When?", session_id="s") as turn:
        for answer in ("error", "09:40"):
            with agent.recorder.tool("find", {"number": 12}) as call:
                call.result = answer
                call.error = answer if answer == "error" else None
        turn.answer = "At 09:40."
    agent.events()
    (trace,) = agent.transport.documents("traceweir.traces")
    assert [(step["type"], step.get("output_summary")) for step in trace["steps"]] == [
        ("tool_call", None),
        ("observation", "error"),
        ("error_recovery", None),
        ("observation", "09:40"),
    ]
    assert (trace["task"], trace["outcome"]) == (
        {"objective": "When?"},
        {"result_summary": "At 09:40.", "confidence": 1.0},
    )
    assert trace["metadata"]["invocation_id"] == turn.id
    assert (trace["metadata"]["task_domain"], trace["metadata"]["visibility"]) == ("travel", "private")


def test_a_reasoning_trace_has_room_in_a_record() -> None:
    agent = Agent(traces=ReasoningTraces("travel"))
    with agent.recorder.invocation("x" * 99_000) as turn:
        for _ in range(500):
            with agent.recorder.tool("find", {"number": "x" * 1_000}) as call:
                call.result = "\x00" * 50_000
        turn.answer = "y" * 99_000
    agent.events()
    assert max(len(value) for topic, _, value in agent.transport.records if topic.endswith("traces")) < 800_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ReasoningTraces("travel", "public"),  # type: ignore[arg-type]
            "visibility must be one of private, org, network, got 'public'",
        ),
        (lambda: ReasoningTraces(""), "task_domain is empty"),
        (lambda: Recorder("a:1", Dimensions(sampling_probability=0)), "sampling_probability must be above 0"),
        (lambda: Recorder("a:1", flush_timeout_s=-1), "flush_timeout_s must be at least 0"),
        (lambda: QueueLimits(events=0), "events and bytes of QueueLimits must be at least 1, got 0 and 32000000"),
    ],
)
def test_an_argument_outside_of_its_range_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


class Hostile:
    """Raises whatever is asked of it."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("value", [Hostile(), b"\xff", 3.5, None, {}, [Hostile()]], ids=type)
def test_no_value_breaks_the_agent(agent: Agent, value: Any) -> None:
    done = []
    with agent.recorder.session(value, user_id=value, labels=value) as session:
        with agent.recorder.invocation(value, agent_name=value, reference_id=value) as turn:
            with agent.recorder.tool(value, value, call_id=value) as call:
                call.result = value
                call.error = value
            with agent.recorder.model_call(value) as model:
                model.input_tokens = model.output_tokens = value
            turn.said(value, value)
            turn.retrieved(value)
            turn.answer = value
            done.append(True)
        session.end()
    assert done == [True]
    assert agent.recorder.flush(10)


def test_an_error_of_the_recording_names_no_content(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with agent.recorder.invocation("secret", session_id="s") as turn:
        turn.retrieved(7)  # type: ignore[arg-type]  # what a careless agent passes
    assert "recording failed while context was retrieved: TypeError; the agent goes on" in caplog.text
    assert "secret" not in caplog.text


def test_times_rise_although_the_clock_is_set_back() -> None:
    walls = iter([10**18, 0])
    clock = RisingClock(lambda: next(walls), lambda: 5)
    assert [clock.text() for _ in range(3)] == [f"2001-09-09T01:46:40.00000{number}Z" for number in range(3)]


def test_an_exception_whose_text_raises_is_named() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert described(BrokenError()) == "BrokenError: <BrokenError>"
