"""Defines TraceweirPlugin: records what agents of Google ADK do, with its content, whatever its telemetry writes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from traceweir.client.adk_calls import AdkCalls
from traceweir.client.contexts import described
from traceweir.client.dimensions import Dimensions
from traceweir.client.invocation_record import InvocationRecord
from traceweir.client.recorder import Recorder

P = ParamSpec("P")

MAX_OPEN_RUNS = 1_000
"""Maximum number of runs at the same time. ADK does not tell plugins that a run was cancelled, so the oldest ends first."""
_CLOSE_TIMEOUT_S = 5.0


@dataclass(slots=True)
class _Run:
    """A run of a runner. A run inside a tool, such as `AgentTool`, has the record of the run around it."""

    record: InvocationRecord
    is_inner: bool = False
    is_started: bool = False
    answer: tuple[str, str] | None = None
    """The author and the text of the latest final response."""
    finish_reason: object = None
    """Why the model ended that response, or its latest one while there is none; None if unknown."""
    models: dict[str, str] = field(default_factory=dict)
    """The model that each agent asked last."""
    calls: AdkCalls = field(init=False)
    """The tool calls of this run alone: the model of a run inside a tool can repeat the ids of the outer one."""

    def __post_init__(self) -> None:
        self.calls = AdkCalls(self.record)


def _harmless(
    callback: Callable[Concatenate[TraceweirPlugin, P], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[TraceweirPlugin, P], Coroutine[Any, Any, None]]:
    """Logs what a callback raises: ADK would end the agent's run with the error."""

    @functools.wraps(callback)
    async def guarded(plugin: TraceweirPlugin, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            await callback(plugin, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  # the recording must not break the agent
            plugin.recorder.recording.problems.raised(f"ADK called {callback.__name__}", error)

    return guarded  # type: ignore[return-value]  # mypy does not see that a method binds the plugin


class TraceweirPlugin(BasePlugin):
    """Records user messages, model calls with tokens, tool calls, responses of agents and the final response.

    Register it first: a plugin that returns a value keeps ADK from calling the plugins after it. It returns nothing, and
    changes nothing.
    """

    def __init__(self, recorder: Recorder, name: str = "traceweir") -> None:
        """Stores the arguments.

        Args:
            recorder: Sends the events. Its `app_name` and `agent_name` come from ADK if they are empty.
            name: Name of the plugin in its runner.
        """
        super().__init__(name=name)
        self.recorder = recorder
        """The recorder."""
        self._runs: dict[str, _Run] = {}
        self._tools_around: ContextVar[tuple[str, ...]] = ContextVar("traceweir.client.adk", default=())
        # The invocations whose tools the code runs in, outer ones first.

    @_harmless
    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        """Begins the record with the user's message."""
        self._start(invocation_context, _text_of(user_message))

    @_harmless
    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Begins the record of a run that goes on without a message."""
        self._start(invocation_context, "")

    @_harmless
    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """Records tool calls, results and responses in the order in which the agent yields them."""
        run = self._runs.get(invocation_context.invocation_id)
        if run is None or event.partial:
            return
        calls = event.get_function_calls()
        answer = event.id if len(calls) > 1 else ""
        for call in calls:
            run.calls.note(call.name or "", call.args, call.id or "", event.author, answer)
        for response in event.get_function_responses():
            run.calls.answered(response.name or "", response.id or "", event.author, response.response)
        text = _text_of(event.content)
        if event.author == "user" or run.is_inner:
            return
        if run.answer is None or (text and event.is_final_response()):
            run.finish_reason = event.finish_reason or event.error_code
        if not text:
            return
        if not event.is_final_response():
            run.record.said(text, event.author)
            return
        # The answer is of an agent before the last one.
        if run.answer is not None:
            run.record.said(run.answer[1], run.answer[0])
        run.answer = (event.author, text)

    @_harmless
    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Notes which model is asked, because not every model names itself in its response."""
        run = self._runs.get(callback_context.invocation_id)
        if run is not None and llm_request.model:
            run.models[callback_context.agent_name] = llm_request.model

    @_harmless
    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Records a model call with its tokens; chunks of a stream are parts of one call."""
        run = self._runs.get(callback_context.invocation_id)
        if run is None or llm_response.partial:
            return
        usage = llm_response.usage_metadata
        run.record.model_called(
            llm_response.model_version or run.models.get(callback_context.agent_name, ""),
            _sum(usage.prompt_token_count, usage.tool_use_prompt_token_count) if usage else None,
            _sum(usage.candidates_token_count, usage.thoughts_token_count) if usage else None,
        )

    @_harmless
    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> None:
        """Records a model call that failed; its tokens are unknown."""
        run = self._runs.get(callback_context.invocation_id)
        if run is not None:
            run.record.model_called(llm_request.model or "")

    @_harmless
    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Records a call that no event has told of yet, and remembers that a run inside the tool belongs to it."""
        run = self._runs.get(tool_context.invocation_id)
        if run is not None:
            self._tools_around.set((*self._tools_around.get(), tool_context.invocation_id))
            run.calls.began(tool.name, tool_args, tool_context.function_call_id or "", tool_context)

    @_harmless
    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """Notes that a tool ended; the event after it tells the result, which other plugins can still change."""
        self._leave(tool_context)

    @_harmless
    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        """Records the error of a tool."""
        run = self._runs.get(tool_context.invocation_id)
        if run is not None:
            call_id = tool_context.function_call_id or ""
            run.calls.failed(tool.name, tool_args, call_id, tool_context, described(error))
            self._leave(tool_context)

    @_harmless
    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """Ends the record of a run that raised."""
        self._end(invocation_context.invocation_id, failed=True)

    @_harmless
    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Ends the record with the final response."""
        self._end(invocation_context.invocation_id, failed=False)

    @_harmless
    async def close(self) -> None:
        """Ends the records of runs that were cancelled, and waits up to 5 s until Kafka has all events."""
        for invocation_id in list(self._runs):
            self._end(invocation_id, failed=True)
        await asyncio.to_thread(self.recorder.flush, _CLOSE_TIMEOUT_S)

    def _start(self, context: InvocationContext, question: str) -> None:
        run = self._runs.get(context.invocation_id)
        if run is None:
            around = self._tools_around.get()
            outer = self._runs.get(around[-1]) if around else None
            record = outer.record if outer is not None else self._new_record(context)
            run = _Run(record, is_inner=outer is not None, is_started=outer is not None)
            self._runs[context.invocation_id] = run
            if len(self._runs) > MAX_OPEN_RUNS:
                self._end(next(iter(self._runs)), failed=True)
        if not run.is_started:
            run.is_started = True
            run.record.started(question)

    def _new_record(self, context: InvocationContext) -> InvocationRecord:
        recording = self.recorder.recording
        known = Dimensions(app_name=context.app_name, agent_name=context.agent.name if context.agent else "")
        dimensions = known.with_known(recording.dimensions).with_known(Dimensions(user_id=context.user_id))
        return recording.new_record(context.session.id, context.invocation_id, dimensions, "")

    def _leave(self, tool_context: ToolContext) -> None:
        around = self._tools_around.get()
        if around and around[-1] == tool_context.invocation_id:
            self._tools_around.set(around[:-1])

    def _end(self, invocation_id: str, *, failed: bool) -> None:
        run = self._runs.pop(invocation_id, None)
        if run is not None and not run.is_inner:
            answer = run.answer[1] if run.answer else ""
            run.record.completed(answer, failed=failed, finish_reason=run.finish_reason)


def _text_of(content: types.Content | None) -> str:
    """Returns the texts of a message without the model's thoughts; a part without text is its type in brackets."""
    found = []
    for part in (content.parts if content else None) or ():
        if part.text and not part.thought:
            found.append(part.text)
        elif part.inline_data is not None:
            found.append(f"[{part.inline_data.mime_type or 'data'}]")
        elif part.file_data is not None:
            found.append(f"[{part.file_data.mime_type or 'file'}]")
    return "\n".join(found)


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
