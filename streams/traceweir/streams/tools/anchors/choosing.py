"""Chooses the labels that become anchors, and freezes their sessions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b

from traceweir.schemas.anchor import Anchor, AnchorLabel, anchor_id
from traceweir.schemas.labels import Label, LabelSubject
from traceweir.schemas.session import Session

MAX_ANCHOR_BYTES = 256 << 10
"""Maximum number of bytes of an anchor: each of its verdicts is paid for its tokens."""
MAX_ALL_BYTES = 64 << 20
"""Maximum number of bytes of all anchors, which a process holds in memory."""
DEFAULT_LIMIT = 200
Frozen = Mapping[tuple[str, int], Sequence[Session]]
"""The revisions of segments, by session and number of the segment."""


@dataclass(frozen=True, slots=True)
class LabelledSubject:
    """A subject of which people say one thing."""

    subject: LabelSubject
    criterion: str
    label: AnchorLabel
    labels: tuple[Label, ...]

    @property
    def is_random(self) -> bool:
        """Whether a review drew it at random."""
        return any(each.calibrates for each in self.labels)

    @property
    def point(self) -> float:
        """Its number from 0 to 1, of which those of the smallest become anchors."""
        return drawn_point("anchors", anchor_id(self.subject, self.criterion))


@dataclass(slots=True)
class ChosenAnchors:
    """The anchors to write, and what could not become one."""

    anchors: list[Anchor] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """How many labels or subjects are not used, by the reason."""


def drawn_point(*parts: str) -> float:
    """Returns a number from 0 to 1 that depends on these texts only.

    >>> 0 <= drawn_point("anchors", "a") < 1, drawn_point("a", "b") == drawn_point("ab")
    (True, False)
    """
    return int.from_bytes(blake2b("\x1f".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).digest()) / 2**48


def labelled_subjects(labels: Iterable[Label], criterion: str | None) -> tuple[list[LabelledSubject], Counter[str]]:
    """Returns the subjects with labels of people that agree, those drawn at random first, and why labels are not used.

    Args:
        labels: All labels.
        criterion: Only labels of this criterion; None: of all.
    """
    refused = Counter[str]()
    by_subject: dict[tuple[str, str], list[Label]] = defaultdict(list)
    for label in labels:
        if criterion not in (None, label.criterion):
            continue
        if (why := _unused(label)) is None:
            by_subject[anchor_id(label.subject, label.criterion), label.criterion].append(label)
        else:
            refused[why] += 1
    found = []
    for (_, name), several in by_subject.items():
        latest = max(several, key=lambda each: each.occurred_at)
        if len({each.verdict for each in several}) > 1:
            refused["people disagree about the subject"] += len(several)
            continue
        verdict: AnchorLabel = "pass" if latest.verdict == "pass" else "fail"
        found.append(LabelledSubject(latest.subject, name, verdict, tuple(several)))
    return sorted(found, key=lambda each: (each.criterion, not each.is_random, each.point)), refused


def unlabelled(known: Mapping[str, Anchor], subjects: Iterable[LabelledSubject], criterion: str | None) -> list[Anchor]:
    """Returns the anchors whose labels are withdrawn, or differ.

    Args:
        known: The anchors, by id.
        subjects: What people have labelled.
        criterion: Only anchors of this criterion; None: of all.
    """
    labelled = {anchor_id(each.subject, each.criterion) for each in subjects}
    return [each for name, each in known.items() if criterion in (None, each.criterion) and name not in labelled]


def _unused(label: Label) -> str | None:
    if label.withdrawn:
        return "withdrawn"
    if label.kind != "review":
        return f"of the kind {label.kind}: only reviews say what a judge should"
    if label.verdict is None:
        return "a number or a category: only `pass` and `fail` are compared"
    if label.verdict == "unsure":
        return "unsure"
    if label.subject.level == "trace":
        return "about a trace, which no judge is asked about"
    return None


def chosen_anchors(
    subjects: Sequence[LabelledSubject], frozen: Frozen, known: Mapping[str, Anchor], limit: int, now: datetime
) -> ChosenAnchors:
    """Returns the anchors that are new, or whose label is another one now.

    Args:
        subjects: What people have labelled, in the order of preference within a criterion.
        frozen: Their sessions.
        known: The anchors that there are already, by id.
        limit: Maximum number of anchors of a criterion.
        now: The time.
    """
    found = ChosenAnchors()
    counts = Counter(each.criterion for each in known.values())
    size = sum(len(each.wire()) for each in known.values())
    for each in subjects:
        identity = anchor_id(each.subject, each.criterion)
        former = known.get(identity)
        if former is not None and former.label == each.label:
            found.refused["an anchor already"] += 1
            continue
        if former is None and counts[each.criterion] >= limit:
            found.refused[f"over the limit of {limit} anchors of a criterion"] += 1
            continue
        session = _session_of(each.subject, frozen)
        if isinstance(session, str):
            found.refused[session] += 1
            continue
        subject = each.subject.model_copy(update={"segment": session.segment, "revision": session.revision})
        anchor = Anchor(
            anchor_id=identity,
            criterion=each.criterion,
            subject=subject,
            label=each.label,
            label_ids=tuple(sorted(label.label_id for label in each.labels)),
            drawn="random" if each.is_random else each.labels[-1].drawn,
            session=session,
            added_at=now,
        )
        length = len(anchor.wire())
        if length > MAX_ANCHOR_BYTES:
            found.refused[f"larger than {MAX_ANCHOR_BYTES:,} bytes"] += 1
            continue
        if size + length > MAX_ALL_BYTES:
            found.refused[f"beyond {MAX_ALL_BYTES:,} bytes of all anchors"] += 1
            continue
        size += length
        counts[each.criterion] += former is None
        found.anchors.append(anchor)
    return found


def _session_of(subject: LabelSubject, frozen: Frozen) -> Session | str:
    """Returns the session as it was when it was labelled, or why there is none."""
    segments = [number for name, number in frozen if name == subject.session_id]
    if subject.segment is None and len(segments) > 1:
        return "the session has several segments, and the label names none"
    number = subject.segment if subject.segment is not None else next(iter(segments), 0)
    revisions = frozen.get((subject.session_id, number), ())
    if subject.revision is not None:
        revisions = [each for each in revisions if each.revision == subject.revision]
    if not revisions:
        return "the topic sessions no longer has the session in the revision that was labelled"
    return max(revisions, key=lambda each: each.revision)
