"""Answers with labels and their scores, and takes labels and feedback."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from traceweir.schemas.labels import MAX_NAME_CHARS, MAX_NOTE_CHARS, Drawn, Label, LabelKind, LabelVerdict
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.board.dashboard.access import LOCAL_CLIENT, TOKENS, KnownClient, as_read
from traceweir.streams.board.dashboard.api.answers import RETRY_AFTER, answer
from traceweir.streams.board.dashboard.api.parameters import Limit
from traceweir.streams.board.dashboard.context import Dashboard, Serving
from traceweir.streams.board.dashboard.criterion_scale import plan_of
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.board.store.labels import JudgedLabel, labels
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.tools.labels.reading import LabelDefaults, label_of
from traceweir.streams.tools.labels.scale import off_scale
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

router = APIRouter()

SCALE_OF_DAYS = timedelta(days=30)
"""The age of scores whose config says on which scale a label must be."""
_Id = Annotated[str | None, Field(min_length=1, max_length=1_024)]
_Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
_Number = Annotated[int | None, Field(strict=True, ge=0, le=2**31)]


class FeedbackRequest(BaseModel):
    """What a user says about a session, sent by the server of the application."""

    model_config = ConfigDict(extra="forbid")

    session_id: Annotated[str, Field(min_length=1, max_length=1_024)]
    """The session."""
    invocation_id: Annotated[_Id, Field(description="The invocation that the feedback is about.")] = None
    trace_id: Annotated[_Id, Field(description="The trace that the feedback is about, in place of an invocation.")] = (
        None
    )
    criterion: Annotated[_Name, Field(description="What was asked, such as `thumbs`, or the name of a metric.")]
    verdict: LabelVerdict | None = None
    value: Annotated[
        float | None, Field(strict=True, allow_inf_nan=False, description="A number in place of a verdict.")
    ] = None
    category: Annotated[_Name | None, Field(description="A category in place of a verdict.")] = None
    note: Annotated[str | None, Field(max_length=MAX_NOTE_CHARS)] = None
    annotator: Annotated[_Name | None, Field(description="Who says it; default: the name of the token.")] = None
    occurred_at: Annotated[AwareDatetime | None, Field(description="When it was said; default: now.")] = None


class LabelRequest(FeedbackRequest):
    """What somebody says about a session that they were asked to judge."""

    segment: _Number = None
    revision: Annotated[_Number, Field(description="The revision that was seen.")] = None
    kind: LabelKind = "review"
    drawn: Drawn = "none"
    inclusion_probability: Annotated[float | None, Field(strict=True, gt=0, le=1)] = None


class LabelTaken(BaseModel):
    """A label that Kafka has."""

    label_id: str
    """Id of the label; another one of the same annotator, subject and criterion replaces it."""


@router.get("/labels", response_model=list[JudgedLabel])
def read_labels(
    dashboard: Serving,
    criterion: Annotated[str | None, Query(min_length=1, max_length=MAX_NAME_CHARS)] = None,
    session_id: Annotated[str | None, Query(min_length=1, max_length=1_024)] = None,
    kind: LabelKind | None = None,
    limit: Limit = 50,
) -> Any:
    """Labels of people, the latest first, each beside the score of the revision that was seen."""
    found = labels(
        dashboard.store, dashboard.options.now(), criterion=criterion, session_id=session_id, kind=kind, limit=limit
    )
    return answer(found, dashboard.options.content)


@router.post("/labels", response_model=LabelTaken)
def take_label(request: Request, given: LabelRequest, dashboard: Serving) -> LabelTaken:
    """Takes a label, and answers when Kafka has it. It replaces the former one of the same annotator, subject and criterion."""
    return take(request, dashboard, given, given.kind)


@router.post("/feedback", response_model=LabelTaken)
def take_feedback(request: Request, given: FeedbackRequest, dashboard: Serving) -> LabelTaken:
    """Takes feedback of a user, from the server of the application. It is a label of the kind `user`, and calibrates no judge."""
    return take(request, dashboard, given, "user")


def client_of(request: Request) -> KnownClient | None:
    """Returns the client who asks; None: it needs no token."""
    client: KnownClient | None = request.scope.get("traceweir.client")
    return client


def name_of_client(request: Request) -> str:
    """Returns the annotator's name of who asks: that of the token."""
    client = client_of(request)
    return client.name if client is not None else LOCAL_CLIENT


def check_annotator(request: Request, declared: str | None) -> None:
    """Checks the name that a client declares: it would replace the labels of another client whom this name proves.

    Raises:
        HTTPException: it is the name of another client.
    """
    others = request.scope[TOKENS].names - {name_of_client(request)}
    if declared is not None and as_read(declared) in map(as_read, others):
        raise HTTPException(
            422, f"annotator: {declared!r} is the name of another client: send its token, or another name"
        )


def take(
    request: Request, dashboard: Dashboard, given: FeedbackRequest, kind: Literal["review", "user", "outcome"]
) -> LabelTaken:
    """Writes a label, and returns when Kafka has it.

    Raises:
        HTTPException: it is no label, it is off the scale of its criterion, it names another client, or Kafka does not take it.
    """
    columns: dict[str, JsonValue] = given.model_dump(mode="json", exclude_none=True)
    own_name = name_of_client(request)
    check_annotator(request, given.annotator)
    try:
        now = dashboard.options.now()
        label = label_of({**columns, "kind": kind}, LabelDefaults(annotator=own_name, now=now), now)
    except InputError as error:
        raise HTTPException(422, str(error)) from None
    plan = None if label.verdict is not None else _plan_of(dashboard, label.criterion)
    if plan is not None and (problem := off_scale(label, plan)) is not None:
        raise HTTPException(422, problem)
    if given.annotator in (None, own_name) and client_of(request) is not None:
        label = label.model_copy(update={"self_declared": False})
    write(dashboard, label)
    return LabelTaken(label_id=label.label_id)


def _plan_of(dashboard: Dashboard, criterion: str) -> Plan | None:
    """Returns the plan on whose scale a label must be; None if it is not known, or the store cannot say it."""
    try:
        since = dashboard.options.now() - SCALE_OF_DAYS
        return plan_of(dashboard.store, dashboard.options.configs(), criterion, since)
    except StoreError:
        # A label is never lost because a store is away.
        return None


def write(dashboard: Dashboard, label: Label) -> None:
    """Writes a label to Kafka, and remembers it until the store has read it.

    Raises:
        HTTPException: Kafka does not take it.
    """
    if dashboard.options.write_labels is None:
        raise HTTPException(503, "labels cannot be taken: this dashboard has no Kafka", RETRY_AFTER)
    try:
        dashboard.options.write_labels([label])
    except (NotReadyError, KafkaUnreachableError) as error:
        raise HTTPException(503, str(error), RETRY_AFTER) from None
    dashboard.given.note(label)
