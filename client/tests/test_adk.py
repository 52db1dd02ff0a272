"""The plugin of Google ADK records what real runs with scripted models do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from tests.fake_transport import FakeTransport

pytest.importorskip("google.adk", reason="needs Google ADK: run `make test-client`, or pip install './client[adk]'")

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.agents.base_agent import BaseAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import Workflow
from google.genai import types
from traceweir.client import Recorder
from traceweir.client.adk import TraceweirPlugin
from traceweir.client.adk_calls import AdkCalls
from traceweir.client.dimensions import Dimensions


class ScriptedModel(BaseLlm):
    """Answers with the replies of a script, each with 100 input and 10 output tokens."""

    replies: list[Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, LlmResponse):
            yield reply
            return
        parts = [types.Part(text=each) if isinstance(each, str) else each for each in reply]
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=100, candidates_token_count=7, thoughts_token_count=3
            ),
        )


def call(name: str, **args: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def find_flight(number: int) -> dict[str, Any]:
    """Finds a flight."""
    return {"number": number, "leaves": "09:40"}


def broken(number: int) -> dict[str, Any]:
    """Finds nothing."""
    raise ValueError(f"no flight {number}")


def agent(*replies: Any, name: str = "desk", **options: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(model="scripted-1", replies=list(replies)), **options)


class Run:
    """A runner with the plugin, whose events a test reads back."""

    def __init__(self, root: BaseAgent, *more: BasePlugin) -> None:
        self.transport = FakeTransport()
        self.recorder = Recorder("", Dimensions(labels={"team": "a"}), connect=lambda: self.transport)
        self.plugin = TraceweirPlugin(self.recorder)
        self.runner = InMemoryRunner(root, app_name="travel", plugins=[self.plugin, *more])

    def stream(self, message: types.Content) -> AsyncIterator[Any]:
        return self.runner.run_async(user_id="ada", session_id="chat", new_message=message)  # type: ignore[no-any-return]

    async def ask(self, *parts: Any) -> list[dict[str, Any]]:
        service = self.runner.session_service
        if await service.get_session(app_name="travel", user_id="ada", session_id="chat") is None:
            await service.create_session(app_name="travel", user_id="ada", session_id="chat")
        message = types.Content(role="user", parts=[types.Part(text=p) if isinstance(p, str) else p for p in parts])
        async for _ in self.stream(message):
            pass
        return self.events()

    def events(self) -> list[dict[str, Any]]:
        assert self.recorder.flush(10)
        return self.transport.documents()


def told(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Returns what each event tells, in short."""
    found: list[tuple[Any, ...]] = []
    for event in events:
        kind = event["type"]
        content = event.get("user_content") or event.get("content") or event.get("final_response")
        text = content["parts"][0]["text"] if content else None
        match kind:
            case "tool.called":
                found.append((kind, event["name"], event["args"]))
            case "tool.returned":
                found.append((kind, event["name"], event.get("response", event.get("error"))))
            case "model.called":
                found.append((kind, event["model"], event.get("input_tokens"), event.get("output_tokens")))
            case "response.intermediate":
                found.append((kind, event["author"], text))
            case _:
                found.append((kind, text))
    return found


MODEL = ("model.called", "scripted-1", 100, 10)
FLIGHT = {"number": 12, "leaves": "09:40"}


async def test_a_turn_with_a_tool_is_recorded_in_order() -> None:
    run = Run(agent(["Let me look.", call("find_flight", number=12)], ["At 09:40."], tools=[find_flight]))
    events = await run.ask("When does flight 12 leave?")
    assert told(events) == [
        ("invocation.started", "When does flight 12 leave?"),
        MODEL,
        ("tool.called", "find_flight", {"number": 12}),
        ("response.intermediate", "desk", "Let me look."),
        ("tool.returned", "find_flight", FLIGHT),
        MODEL,
        ("invocation.completed", "At 09:40."),
    ]
    assert {event["session_id"] for event in events} == {"chat"}
    assert {(event["app_name"], event["agent_name"], event["user_id"]) for event in events} == {
        ("travel", "desk", "ada")
    }
    assert {event["labels"]["team"] for event in events} == {"a"}
    assert len({event["invocation_id"] for event in events}) == 1
    assert not any("missing" in event for event in events)
    calls = [event["call_id"] for event in events if event["type"].startswith("tool.")]
    assert calls[0] == calls[1]


async def test_turns_of_a_session_are_invocations_of_it() -> None:
    run = Run(agent(["one"], ["two"]))
    await run.ask("first")
    events = await run.ask("second")
    assert len({event["invocation_id"] for event in events}) == 2
    assert {event["session_id"] for event in events} == {"chat"}
    assert told(events)[-1] == ("invocation.completed", "two")


async def test_parallel_tool_calls_keep_the_order_of_the_model() -> None:
    both = [call("find_flight", number=1), call("find_flight", number=2)]
    events = await Run(agent(both, ["done"], tools=[find_flight])).ask("q")
    calls = [event for event in events if event["type"] == "tool.called"]
    results = {event["call_id"]: event["response"]["number"] for event in events if event["type"] == "tool.returned"}
    assert [each["args"]["number"] for each in calls] == [1, 2]
    assert [results[each["call_id"]] for each in calls] == [1, 2]
    assert calls[0]["model_call_id"] == calls[1]["model_call_id"] != ""


async def test_a_single_call_of_an_answer_names_no_answer() -> None:
    events = await Run(agent([call("find_flight", number=1)], ["done"], tools=[find_flight])).ask("q")
    assert [each.get("model_call_id") for each in events if each["type"] == "tool.called"] == [None]


def paired(events: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Returns the arguments of each call, and its results: those with the id of the call."""
    results: dict[str, list[Any]] = {}
    for event in events:
        if event["type"] == "tool.returned":
            results.setdefault(event["call_id"], []).append(event.get("response", event.get("error")))
    return [(each["args"], results.pop(each["call_id"])) for each in events if each["type"] == "tool.called"]


def numbered(call_id: str, number: int) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=call_id, name="find_flight", args={"number": number}))


def found(number: int) -> tuple[Any, Any]:
    return {"number": number}, [{"number": number, "leaves": "09:40"}]


async def test_calls_of_several_answers_with_one_id_are_told_apart() -> None:
    replies: list[Any] = [[numbered("call_0", 1)], [numbered("call_0", 2)], [numbered("call_0", 2)], ["done"]]
    events = await Run(agent(*replies, tools=[find_flight])).ask("q")
    assert paired(events) == [found(1), found(2), found(2)]
    assert not [event for event in events if "missing" in event]


async def test_parallel_calls_with_one_id_are_told_apart() -> None:
    both = [numbered("call_0", 1), numbered("call_0", 2)]
    assert paired(await Run(agent(both, ["done"], tools=[find_flight])).ask("q")) == [found(1), found(2)]


async def test_the_error_of_one_of_two_calls_with_one_id_is_the_error_of_that_call() -> None:
    def picky(number: int) -> dict[str, Any]:
        """Finds some flights."""
        return broken(number) if number == 1 else find_flight(number)

    class Forgiving(BasePlugin):
        async def on_tool_error_callback(self, **_: Any) -> dict[str, Any]:
            return {"leaves": "unknown"}

    def asked(number: int) -> types.Part:
        return types.Part(function_call=types.FunctionCall(id="call_0", name="picky", args={"number": number}))

    run = Run(agent([asked(1), asked(2)], ["done"], tools=[picky]), Forgiving("forgiving"))
    assert paired(await run.ask("q")) == [({"number": 1}, ["ValueError: no flight 1"]), found(2)]


def test_calls_without_an_id_are_told_apart() -> None:
    transport = FakeTransport()
    recorder = Recorder("", connect=lambda: transport)
    calls = AdkCalls(recorder.recording.new_record("chat", "turn", Dimensions(), ""))
    for number in (1, 2):
        calls.note("find_flight", {"number": number}, "", "desk")
        calls.began("find_flight", {"number": number}, "", object())
    for number in (1, 2):
        calls.answered("find_flight", "", "desk", find_flight(number))
    assert recorder.flush(10)
    assert paired(transport.documents()) == [found(1), found(2)]


async def test_an_agent_as_a_tool_can_repeat_the_id_of_the_call_around_it() -> None:
    inner = agent([numbered("call_0", 12)], ["09:40"], name="searcher", tools=[find_flight], description="d")
    asked = types.Part(function_call=types.FunctionCall(id="call_0", name="searcher", args={"request": "12"}))
    events = await Run(agent([asked], ["At 09:40."], tools=[AgentTool(inner)])).ask("q")
    assert paired(events) == [({"request": "12"}, [{"result": "09:40"}]), found(12)]


async def test_the_error_of_a_tool_is_recorded_and_ends_the_run_as_without_the_plugin() -> None:
    run = Run(agent([call("broken", number=12)], tools=[broken]))
    with pytest.raises(ValueError, match="no flight 12"):
        await run.ask("q")
    assert told(run.events())[1:] == [
        MODEL,
        ("tool.called", "broken", {"number": 12}),
        ("tool.returned", "broken", "ValueError: no flight 12"),
        ("invocation.completed", None),
    ]


async def test_the_error_of_a_model_is_recorded() -> None:
    run = Run(agent(RuntimeError("overloaded")))
    with pytest.raises(RuntimeError, match="overloaded"):
        await run.ask("q")
    assert told(run.events())[1:] == [("model.called", "scripted-1", None, None), ("invocation.completed", None)]


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")
async def test_the_last_of_several_agents_gives_the_answer() -> None:
    both = SequentialAgent(name="pair", sub_agents=[agent(["draft"], name="writer"), agent(["final"], name="editor")])
    assert told(await Run(both).ask("q"))[1:] == [
        MODEL,
        MODEL,
        ("response.intermediate", "writer", "draft"),
        ("invocation.completed", "final"),
    ]


async def test_an_agent_as_a_tool_belongs_to_the_turn_around_it() -> None:
    inner = agent([call("find_flight", number=12)], ["09:40"], name="searcher", tools=[find_flight], description="d")
    outer = agent([call("searcher", request="flight 12")], ["At 09:40."], tools=[AgentTool(inner)])
    events = await Run(outer).ask("q")
    assert told(events) == [
        ("invocation.started", "q"),
        MODEL,
        ("tool.called", "searcher", {"request": "flight 12"}),
        MODEL,
        ("tool.called", "find_flight", {"number": 12}),
        ("tool.returned", "find_flight", FLIGHT),
        MODEL,
        ("tool.returned", "searcher", {"result": "09:40"}),
        MODEL,
        ("invocation.completed", "At 09:40."),
    ]
    assert {(event["session_id"], event["user_id"]) for event in events} == {("chat", "ada")}
    assert len({event["invocation_id"] for event in events}) == 1


async def test_a_sub_agent_that_takes_over_is_named() -> None:
    booker = agent(["Booked."], name="booker", description="Books.")
    events = await Run(agent([call("transfer_to_agent", agent_name="booker")], sub_agents=[booker])).ask("Book!")
    assert told(events)[1:] == [
        MODEL,
        ("tool.called", "transfer_to_agent", {"agent_name": "booker"}),
        ("tool.returned", "transfer_to_agent", {"result": None}),
        MODEL,
        ("invocation.completed", "Booked."),
    ]


async def test_a_workflow_is_one_turn() -> None:
    both = Workflow(name="pair", edges=[("START", agent(["draft"], name="writer"), agent(["final"], name="editor"))])
    events = await Run(both).ask("q")
    assert told(events) == [
        ("invocation.started", "q"),
        MODEL,
        MODEL,
        ("response.intermediate", "writer", "draft"),
        ("invocation.completed", "final"),
    ]


async def test_chunks_of_a_stream_are_one_model_call() -> None:
    class StreamingModel(ScriptedModel):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            for text in ("At ", "09:40."):
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=True)
            async for whole in super().generate_content_async(llm_request, stream):
                yield whole

    root = LlmAgent(name="desk", model=StreamingModel(model="scripted-1", replies=[["At 09:40."]]))
    assert told(await Run(root).ask("q"))[1:] == [MODEL, ("invocation.completed", "At 09:40.")]


async def test_a_part_without_text_is_its_type_in_brackets() -> None:
    image = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG"))
    events = await Run(agent(["A cat."])).ask("What is this?", image)
    assert told(events)[0] == ("invocation.started", "What is this?\n[image/png]")


async def test_a_run_that_the_caller_leaves_is_ended() -> None:
    run = Run(agent([call("find_flight", number=12)], ["never"], tools=[find_flight]))
    await run.runner.session_service.create_session(app_name="travel", user_id="ada", session_id="chat")
    stream = run.stream(types.Content(role="user", parts=[types.Part(text="q")]))
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator
    await run.plugin.close()
    assert told(run.events())[-1] == ("invocation.completed", None)


async def test_a_plugin_after_it_that_replaces_a_result_is_recorded() -> None:
    class Redacting(BasePlugin):
        async def after_tool_callback(self, **_: Any) -> dict[str, Any]:
            return {"leaves": "redacted"}

    run = Run(agent([call("find_flight", number=12)], ["done"], tools=[find_flight]), Redacting("redacting"))
    assert ("tool.returned", "find_flight", {"leaves": "redacted"}) in told(await run.ask("q"))


async def test_the_run_goes_on_if_the_recording_fails(caplog: pytest.LogCaptureFixture) -> None:
    run = Run(agent(["fine"]))
    message: Any = "not a content"
    await run.plugin.on_user_message_callback(invocation_context=message, user_message=message)
    assert "recording failed while ADK called on_user_message_callback: AttributeError" in caplog.text
    assert told(await run.ask("q"))[-1] == ("invocation.completed", "fine")


def ended(reason: types.FinishReason, *texts: str) -> LlmResponse:
    content = types.Content(role="model", parts=[types.Part(text=each) for each in texts])
    if texts:
        return LlmResponse(content=content, finish_reason=reason)
    return LlmResponse(error_code=reason, error_message="", finish_reason=reason)


LIMIT = types.FinishReason.MAX_TOKENS


@pytest.mark.parametrize(
    ("replies", "sentence"),
    [
        ([ended(LIMIT, "It le")], "not all of the answer is there: the model stopped at its limit 'MAX_TOKENS'"),
        ([ended(LIMIT)], "the answer is not there: the model stopped at its limit 'MAX_TOKENS'"),
        (
            [[call("find_flight", number=7)], ended(types.FinishReason.SAFETY)],
            "the answer is not there: the model stopped because of 'SAFETY'",
        ),
    ],
    ids=["an answer", "no text", "after a call"],
)
async def test_an_answer_that_was_cut_is_said_to_be_cut(replies: list[Any], sentence: str) -> None:
    *_, completed = await Run(agent(*replies, tools=[find_flight])).ask("When does 7 leave?")

    assert completed["type"] == "invocation.completed"
    assert completed["missing"] == [sentence]


@pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")
async def test_of_several_agents_the_end_of_the_answer_counts() -> None:
    first = agent(ended(LIMIT, "It le"), name="first")
    second = agent(ended(types.FinishReason.STOP, "It leaves at 9."), name="second")
    *_, completed = await Run(SequentialAgent(name="desk", sub_agents=[first, second])).ask("When does 7 leave?")

    assert completed["final_response"]["parts"][0]["text"] == "It leaves at 9."
    assert "missing" not in completed
