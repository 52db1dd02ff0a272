"""Defines Anchor and AnchorVerdict: frozen sessions with labels of people, and what a judge says about them later."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from traceweir.schemas.base import Identifier, NonEmpty, Timestamp, WireModel
from traceweir.schemas.labels import MAX_NAME_CHARS, Drawn, LabelSubject
from traceweir.schemas.score import Cause, Cost, NotEvaluated, uuid5
from traceweir.schemas.session import Session

AnchorLabel = Literal["pass", "fail"]


class Anchor(WireModel):
    """A frozen session with the label that a person gave to it, or to an invocation of it, for one criterion.

    The record's key is `anchor_id`. The topic is compacted: the latest record of an id counts, and a tombstone removes it.
    """

    anchor_id: Identifier
    """Id of the anchor; `anchor_id` makes it of what was labelled and the criterion."""
    criterion: Annotated[NonEmpty, Field(max_length=MAX_NAME_CHARS)]
    """The metric that the label is about."""
    subject: LabelSubject
    """What was labelled, in the revision that is frozen."""
    label: AnchorLabel
    """What people say: that it passes the criterion, or fails it."""
    label_ids: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    """The labels that say so."""
    drawn: Drawn
    """How the subject was chosen for its label; only anchors that were drawn at `random` are like what is judged."""
    session: Session
    """The session, as it was on the topic `sessions`."""
    added_at: Timestamp
    """When the anchor was made."""

    def wire(self) -> bytes:
        """Returns the record's value."""
        return self.model_dump_json(exclude_none=True).encode()


class AnchorVerdict(WireModel):
    """What a judge said about an anchor. It is no Score, and is in no rate, page, export, decision or alert of an agent."""

    anchor_id: Identifier
    """The anchor."""
    criterion: Annotated[NonEmpty, Field(max_length=MAX_NAME_CHARS)]
    """The metric."""
    metric_digest: NonEmpty
    """Digest of what measures the criterion, as in a Score."""
    set_id: Identifier
    """Id of what is compared: the digest and threshold of the metric, and all anchors of it. Another set begins anew."""
    label: AnchorLabel
    """The label of the anchor."""
    passed: bool | None = None
    """Whether the value passes; null if the judge gave no verdict."""
    value: float | None = None
    """The value; null if the judge gave no verdict."""
    not_evaluated_because: NotEvaluated | None = None
    """Why there is no verdict; null if there is one."""
    cause: Cause | None = None
    """What the judge lacked for a verdict, as far as it is known."""
    judge: str | None = None
    """The model that judged, as in a Score; null if none has answered."""
    cost: Cost = Cost()
    """What the questions have cost."""
    due_at: Timestamp
    """When it was the turn of the anchor. Of two verdicts of one set and time, the first counts."""
    judged_at: Timestamp
    """When the judge answered."""

    def wire(self) -> bytes:
        """Returns the record's value."""
        return self.model_dump_json(exclude_none=True).encode()


def anchor_id(subject: LabelSubject, criterion: str) -> str:
    """Returns the id of an anchor, so that a later label of the same subject replaces it.

    >>> first, later = (LabelSubject(session_id="s", segment=0, revision=n, level="session") for n in (0, 1))
    >>> anchor_id(first, "helpful") == anchor_id(later, "helpful")
    True
    """
    segment = "" if subject.segment is None else str(subject.segment)
    return uuid5("anchor", criterion, subject.session_id, segment, subject.level, subject.subject_id)
