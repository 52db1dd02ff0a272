"""Defines Label: what a person says about a session, on the topic `labels`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from traceweir.schemas.base import Identifier, NonEmpty, Timestamp, WireModel
from traceweir.schemas.invocation import Level
from traceweir.schemas.score import Count, uuid5

LabelVerdict = Literal["pass", "fail", "unsure"]
LabelKind = Literal["review", "user", "outcome"]
Drawn = Literal["random", "flagged", "none"]
MAX_NOTE_CHARS = 4_000
MAX_NAME_CHARS = 200


class LabelSubject(WireModel):
    """What a label is about: a session, or an invocation or a trace of it, in the revision that was seen."""

    session_id: Identifier
    """The session."""
    segment: Count | None = None
    """Number of the session's segment, from 0; null if the source of the label does not know it."""
    revision: Count | None = None
    """Number of the revision that was seen, from 0; null if the source of the label does not know it."""
    level: Level
    """What was judged: an invocation, a trace or the session."""
    invocation_id: Identifier | None = None
    """The judged invocation; null at the other levels."""
    trace_id: Identifier | None = None
    """The judged trace; null at the other levels."""

    @property
    def subject_id(self) -> str:
        """The id of what was judged: of the invocation, of the trace, or of the session."""
        return self.invocation_id or self.trace_id or self.session_id

    @model_validator(mode="after")
    def _check_level_names_the_subject(self) -> LabelSubject:
        named = {"invocation": self.invocation_id, "trace": self.trace_id}
        for level, found in named.items():
            if (level == self.level) != (found is not None):
                rule = "needs" if level == self.level else "has no"
                raise ValueError(f"a label of the level {self.level} {rule} {level}_id")
        return self


class Label(WireModel):
    """What a person, a user's feedback or an outcome says about a subject: a verdict, a value or a category.

    Labels are never Scores. The record's key is `label_id`, and the topic is compacted: the last record of an id counts.
    Of several labels of one annotator on one subject and criterion, the one with the latest `occurred_at` counts. Only
    labels of the kind `review` that were drawn at `random` say how good a judge is; see `calibrates`.
    """

    label_id: Identifier
    """Id of the label; `label_id` makes it of what is judged and who judges."""
    subject: LabelSubject
    """What was judged."""
    criterion: Annotated[NonEmpty, Field(max_length=MAX_NAME_CHARS)]
    """The metric that the label is compared with, or the name of the outcome."""
    metric_digest: NonEmpty | None = None
    """Digest of what measured the criterion when the label was given; null if unknown."""
    verdict: LabelVerdict | None = None
    """`pass`, `fail`, or `unsure` if the annotator cannot say; null if there is a value or a category."""
    value: float | None = None
    """A number on the criterion's own scale; null if there is a verdict or a category."""
    category: Annotated[NonEmpty, Field(max_length=MAX_NAME_CHARS)] | None = None
    """A category of the criterion; null if there is a verdict or a value."""
    note: Annotated[str, Field(max_length=MAX_NOTE_CHARS)] | None = None
    """Why, in the annotator's words; null if nothing was written, or if the note was erased."""
    annotator: Annotated[NonEmpty, Field(max_length=MAX_NAME_CHARS)]
    """Who judged: the name of the token, or a name that the sender declared."""
    self_declared: bool = False
    """Whether the sender declared the annotator's name, and no token proves it."""
    kind: LabelKind
    """`review`: somebody who was asked to judge; `user`: a user's feedback; `outcome`: what happened afterwards."""
    drawn: Drawn = "none"
    """How the subject was chosen: at `random` with a known probability, because it was `flagged`, or in no known way."""
    inclusion_probability: Annotated[float, Field(gt=0, le=1)] | None = None
    """The probability with which the subject was drawn, above 0; null if it was not drawn at random."""
    occurred_at: Timestamp
    """When the label was given."""
    withdrawn: bool = False
    """Whether the label was withdrawn. It then needs no verdict, and counts nowhere."""

    @property
    def calibrates(self) -> bool:
        """Whether the label may say how good a judge is: a review of a subject that was drawn at random."""
        return self.kind == "review" and self.drawn == "random" and not self.withdrawn

    def wire(self) -> bytes:
        """Returns the record's value."""
        return self.model_dump_json(exclude_none=True).encode()

    @model_validator(mode="after")
    def _check_one_answer(self) -> Label:
        given = [name for name in ("verdict", "value", "category") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} are given, and a label has exactly one of verdict, value, category"
            )
        if not given and not self.withdrawn:
            raise ValueError("a label needs exactly one of verdict, value, category")
        return self

    @model_validator(mode="after")
    def _check_probability_belongs_to_a_draw(self) -> Label:
        if (self.drawn == "random") != (self.inclusion_probability is not None):
            raise ValueError(
                f"drawn {self.drawn} with inclusion_probability {self.inclusion_probability}; the probability must be "
                "present exactly when the subject was drawn at random"
            )
        return self


def label_id(subject: LabelSubject, criterion: str, annotator: str, kind: LabelKind) -> str:
    """Returns the id of an annotator's label, so that a later label of the same subject replaces an earlier one.

    The revision is not a part of it: a label that confirms an earlier one at a later revision replaces it too.

    >>> first, later = (LabelSubject(session_id="s", segment=0, revision=n, level="session") for n in (0, 1))
    >>> label_id(first, "helpful", "ana", "review") == label_id(later, "helpful", "ana", "review")
    True
    >>> label_id(first, "helpful", "ana", "review") == label_id(first, "helpful", "ben", "review")
    False
    """
    segment = "" if subject.segment is None else str(subject.segment)
    return uuid5("label", subject.session_id, segment, subject.level, subject.subject_id, criterion, annotator, kind)
