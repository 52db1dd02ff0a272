"""Defines Convention: all that is known of one way in which a library or a standard writes what an agent did.

A convention is one value in a file of its own. The reader knows no convention by name: it asks those in
`conventions.CONVENTIONS`, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Source
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage
from traceweir.streams.intake.spans.span import Attributes, Kind, Span


class Switch(NamedTuple):
    """The setting that makes an instrumentation write content, and the spans to which it applies."""

    setting: str
    """The setting with its value, as a user writes it."""
    keys: tuple[str, ...] = ()
    """Beginnings of attributes; one of them is enough."""
    scopes: tuple[str, ...] = ()
    """Names of instrumentation scopes, in lower case; one with `*` at its end is a beginning. One of them is enough."""

    def applies(self, keys: Set[str], scopes: Set[str]) -> bool:
        """Returns whether spans with these attributes and scopes, whose names are in lower case, are those of the setting."""
        if self.keys and any(key.startswith(self.keys) for key in keys):
            return True
        beginnings = tuple(scope[:-1] for scope in self.scopes if scope.endswith("*"))
        return not scopes.isdisjoint(self.scopes) or any(scope.startswith(beginnings) for scope in scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """One way of writing what an agent did.

    Each field has the value that says nothing, so that a convention states only what is its own. Where a field names
    attributes, the first that is there counts; those of `GENAI`, the standard, are looked for before all others.
    """

    name: str
    """Name of the convention, as in the table of docs/opentelemetry.md."""
    kind_keys: tuple[str, ...] = ()
    """Attributes of which a span has one, if `kind` can tell its kind; `kind` is not asked of other spans."""
    kind: Callable[[Span], Kind | None] | None = None
    """Tells the kind of a span by its attributes; None if they are not those of the convention."""
    kind_of_name: Callable[[Span], Kind | None] | None = None
    """Tells the kind of a span by its name; asked only if no convention knows the attributes."""
    joined: Callable[[Sequence[Span]], Sequence[Span]] | None = None
    """Tells the spans of a trace with the spans of one step made one, where only several together tell the step."""
    switches: tuple[Switch, ...] = ()
    """The settings that make the instrumentation write content; the first that applies counts."""
    frameworks: tuple[tuple[str, str], ...] = ()
    """Words in the name of an instrumentation scope, in lower case, each with the framework that it names."""
    clients: tuple[tuple[str, str], ...] = ()
    """As `frameworks`, for clients of models and for tracers; asked last, because a framework that calls them says more."""

    shared_sessions: tuple[str, ...] = ()
    """Attributes with the id of the session which several conventions write; they precede all `sessions`."""
    sessions: tuple[str, ...] = ()
    """Attributes with the id of the session."""
    no_session: Callable[[Attributes], str] | None = None
    """Tells the attribute whose id names no session of these attributes, though it is there; empty if there is none."""
    users: tuple[str, ...] = ()
    """Attributes with the id of the user."""
    other_ids: tuple[str, ...] = ()
    """Attributes with ids of something else, whose names are like those of a session or a user."""
    session_of: Callable[[Attributes], str] | None = None
    """Tells the id of the session where no attribute is that id; empty if the attributes do not have it."""
    user_of: Callable[[Attributes], str] | None = None
    """Tells the id of the user where no attribute is that id; empty if the attributes do not have it."""
    user_in_request: Callable[[Attributes], str | None] | None = None
    """Tells the id of the user in the request to an agent; asked last; None if the attributes do not have it."""
    waits: Callable[[Span], bool] | None = None
    """Tells whether a step stopped to wait for a person, which is no failure."""
    resumption: Callable[[Span], str | None] | None = None
    """Tells what a person answered, from the span of the run that goes on with it; empty if that is no text, None for any
    other run."""
    repeats_question: Callable[[Span], bool] | None = None
    """Tells whether a run can go on with the question of a former one, which it repeats, and with the results of its calls."""
    is_turn: Callable[[Span], bool] | None = None
    """Tells whether a span is a turn of a conversation that is one trace, whose outermost span ends after all turns."""
    apps: tuple[str, ...] = ()
    """Attributes of the resource or a span with the name of the application, where the service has none."""
    environments: tuple[str, ...] = ()
    """Attributes of the resource, the outermost span or one above it, with the name of the environment, beside those of the
    resource conventions."""
    tags: tuple[str, ...] = ()
    """Attributes of the outermost span, or of one above it, with a list of tags, each a label."""
    agents: tuple[str, ...] = ()
    """Attributes with the name of the agent."""
    agent_of: Mapping[Kind, Callable[[Span], str]] = field(default_factory=dict)
    """Tells, for spans of each of these kinds, the name of the agent where no attribute has it; empty if the span does not."""

    models: tuple[str, ...] = ()
    """Attributes with the model that answered."""
    requested_models: tuple[str, ...] = ()
    """Attributes with the model that was asked, which can be an alias of the one that answered."""
    model_of: Callable[[Attributes], str] | None = None
    """Tells the model where no attribute is its name; empty if the attributes do not have it."""
    providers: tuple[str, ...] = ()
    """Attributes with the name of the provider of the model."""
    framing_providers: tuple[str, ...] = ()
    """Names of providers whose API demands an object as the result of a tool, so that other values are in
    `{"result": value}`."""
    flagging_providers: tuple[str, ...] = ()
    """Names, in lower case, of providers whose API says beside the result of a tool whether the tool failed."""
    stopping_providers: tuple[str, ...] = ()
    """Names of providers whose answers can end with `stop` also where they ask for tools."""
    input_tokens: tuple[str, ...] = ()
    """Attributes with the number of input tokens."""
    output_tokens: tuple[str, ...] = ()
    """Attributes with the number of output tokens."""
    usages: tuple[str, ...] = ()
    """Attributes with the tokens as an object of JSON."""
    answer_metadata: Callable[[Attributes], Mapping[str, Any]] | None = None
    """Tells `model` and `usage`, an object of tokens, where they are a part of the answer; empty if they are not there."""

    inputs: tuple[Source, ...] = ()
    """Where the span of a model call has the messages that the model read; each source reads a list of messages."""
    outputs: tuple[Source, ...] = ()
    """Where the span of a model call has the messages that the model wrote; each source reads a list of messages."""
    forced_tool: Callable[[Attributes], str] | None = None
    """Tells the name of the tool that the model had to call; empty if it could choose, or if it is unknown."""
    finishes: tuple[str, ...] = ()
    """Attributes with the reason why an answer ended, or with a list of them."""
    step: Callable[[Span], SpanMessage | None] | None = None
    """Tells what a model wrote, from the span around that of its call; None for any other span."""
    asked_call: Callable[[Span], RequestedCall | None] | None = None
    """Tells a call that a model asked for, from a span below that of the model's call; None for any other span."""
    rounds: Callable[[Span], list[SpanMessage]] | None = None
    """Tells the calls and results of the rounds that a client played by itself within one model call."""

    questions: tuple[Source, ...] = ()
    """Where the span of an agent or a workflow has the question; each source reads a text, empty if it is not there."""
    answers: tuple[Source, ...] = ()
    """Where the span of an agent or a workflow has the answer; each source reads a text, empty if it is not there."""
    agent_texts: tuple[Source, ...] = ()
    """Where the span of an agent has its answer as a text that can be JSON; asked before answers of rank `REST`."""
    heard: Callable[[Sequence[Span]], str] | None = None
    """Tells what the user said, from the spans of an invocation whose agents and models do not tell the question."""
    histories: tuple[str, ...] = ()
    """Attributes of the span of an agent with all messages of its run; asked last, for the question."""
    answer_padding: str = ""
    """Characters that the framework adds to the end of an answer."""
    is_protocol: Callable[[str], bool] | None = None
    """Tells whether the text of a model is only for the framework, which reads fields from it."""

    tool_ids: tuple[str, ...] = ()
    """Attributes of a tool's span with the id of the call."""
    tool_names: tuple[str, ...] = ()
    """Attributes of a tool's span with the name of the tool."""
    asked_tool: Callable[[Attributes], str] | None = None
    """Tells the name under which a model asks for the tool, where the standard's key has another; empty if it has not."""
    tool_name_prefixes: tuple[str, ...] = ()
    """What stands before the name of the tool in the name of its span."""
    tool_name_suffixes: tuple[str, ...] = ()
    """What stands after the name of the tool in the name of its span."""
    is_server_call: Callable[[Attributes], bool] | None = None
    """Tells whether a span is the call of a server's tool, as its client or the server recorded it."""
    handoff: Callable[[str], str] | None = None
    """Tells the name under which a model asks for a handover to another agent, by the tool's name; empty for other tools."""
    no_tool_ids: tuple[str, ...] = ()
    """Beginnings of what stands in place of the id of a call."""
    has_made_up_id: Callable[[RequestedCall], bool] | None = None
    """Tells whether the framework made up the id of a call, so that ids repeat."""
    name_in_id: Callable[[str], str] | None = None
    """Tells the name of the tool in an id that no call has; empty if it is not there."""
    inner_result: Callable[[Any], Mapping[str, Any] | None] | None = None
    """Tells the result of a tool in an object, or a text of it, that the framework puts around it; None for any other."""
    no_arguments: tuple[str, ...] = ()
    """Texts in place of the arguments of a call."""
    arguments: tuple[Source, ...] = ()
    """Where a tool's span has the arguments of the call; each source reads a value, `ABSENT` if it is not there."""
    results: tuple[Source, ...] = ()
    """Where a tool's span has the result of the call; each source reads a value, `ABSENT` if it is not there."""
    hides_call: Callable[[Span], bool] | None = None
    """Tells whether what a tool's span has as arguments and result stands in place of hidden content."""
    frames_results: Callable[[Span], bool] | None = None
    """Tells whether the result of a tool's span can be in the frame `{"result": value}`."""
    frames_recorded: Callable[[str, Span | None], bool] | None = None
    """Tells whether the result that a model reads can be in that frame, by the id and, if it has one, the span of the call."""
    failures: tuple[str, ...] = ()
    """Attributes of a span with the word `error` if its step failed."""
    failure_messages: tuple[str, ...] = ()
    """Attributes of a span with the error message."""
    has_failed: Callable[[Span, Any], bool] | None = None
    """Tells whether a tool failed, by its span and its result."""
    error_in_result: Callable[[str], str] | None = None
    """Tells the error message in a text that a model reads in place of a result; empty if it is none."""
    hides_error: Callable[[str, str], bool] | None = None
    """Tells whether a status tells no error message, by its description and by the last line of that."""
    without_stack: Callable[[str], str] | None = None
    """Tells an error message without what is written after it; other messages as they are."""
    is_late_result: Callable[[Span], bool] | None = None
    """Tells whether a tool's span has only the result of a call, whose own span ended before."""
    no_runs: tuple[str, ...] = ()
    """Names in tools' spans that are around several calls, or are made for the trace, and are no call."""
    is_no_run: Callable[[str, Any], bool] | None = None
    """Tells whether a tool's span is no call, by the name and the result of the tool."""
    is_submission: Callable[[str, Span, Any, Any], bool] | None = None
    """Tells whether a call is the answer of the agent, by the tool's name and span, the arguments and the result."""
    answering_tools: tuple[str, ...] = ()
    """Names of tools with which the framework lets a model write its answer; they are no tools of the agent."""

    log_events: tuple[str, ...] = ()
    """Beginnings of the names of log records with content of model calls; other log records are not read."""
    contents: tuple[str, ...] = ()
    """Attributes by which a span of an agent has something to tell, also if no other span is work of the agent."""
    only_json: tuple[str, ...] = ()
    """Attributes that are always written as JSON: such a text without an end was cut."""
    documents: tuple[str, ...] = ()
    """Attributes with the documents that a retriever returned."""
    spread_documents: tuple[str, ...] = ()
    """Beginnings of attributes over which the documents of a retriever are spread, such as `retrieval.documents.`."""
    content_spans: tuple[str, ...] = ()
    """Beginnings of the names of spans in which the model and the tokens are a part of the content."""
    unended_agents: str = ""
    """When the instrumentation never ends the span of an agent, such as `acme when a run is cancelled`."""
    quirks: Callable[[SeenInvocation], Mapping[str, str]] | None = None
    """Tells what the spans of an invocation cannot contain: a sentence for each part, as in `Missing.parts`."""

    def __post_init__(self) -> None:
        """Raises ValueError if `kind` would never be asked, or has nothing to tell."""
        if bool(self.kind_keys) == (self.kind is None):
            raise ValueError(f"the convention {self.name} must have both `kind_keys` and `kind`, or neither")
