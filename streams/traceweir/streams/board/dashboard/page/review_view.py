"""Arranges the subjects of a criterion for one person who labels them: two queues, and what is done of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple
from urllib.parse import urlencode

from traceweir.schemas.labels import Label
from traceweir.streams.base.statistics.rate_intervals import Interval
from traceweir.streams.board.dashboard.given_labels import ReviewLabel
from traceweir.streams.board.store.review import ReviewSubject

SHARES = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The shares that the page offers."""
DEFAULT_SHARE = 0.05
AT_ONCE = 50
"""The page suggests the least share with which as many subjects are drawn."""
Identity = tuple[str, int, str, str | None, str | None]


class AnswerOfTwo(NamedTuple):
    """What two people say about a subject."""

    session: str
    first: str
    second: str
    weight: float
    """1 / the probability with which it was drawn for the first."""


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A subject with what a person has said about it."""

    subject: ReviewSubject
    label: ReviewLabel | None
    """The person's label, of whichever revision; None without one."""

    @property
    def is_done(self) -> bool:
        """Whether the person has labelled the newest revision."""
        return self.label is not None and self.label.is_about(self.subject.revision)

    @property
    def stale(self) -> bool:
        """Whether the person has labelled an earlier revision only."""
        return self.label is not None and not self.is_done

    def about(self, revision: int) -> str:
        """Returns the ids of the subject in one text that a form leaves as it is.

        Args:
            revision: The revision that the person sees.
        """
        subject = self.subject
        ids = {"invocation_id": subject.invocation_id, "trace_id": subject.trace_id}
        about = {"session_id": subject.session_id, "segment": subject.segment, "revision": revision}
        return urlencode({**about, **{name: value for name, value in ids.items() if value is not None}})


@dataclass(frozen=True, slots=True)
class Queue:
    """Subjects in the order in which they are offered."""

    entries: Sequence[QueueEntry]
    after: float
    """The point up to which the person has come; a subject up to there that is not labelled was passed over."""

    @property
    def labelled(self) -> int:
        """Number of subjects that the person has labelled."""
        return sum(each.is_done for each in self.entries)

    @property
    def unsure(self) -> int:
        """Number of these of which the person could not say it."""
        return sum(
            each.is_done and each.label is not None and each.label.label.verdict == "unsure" for each in self.entries
        )

    @property
    def left(self) -> int:
        """Number of subjects that the person has not labelled."""
        return len(self.entries) - self.labelled

    @property
    def passed_over(self) -> int:
        """Number of subjects that the person was shown and has not labelled."""
        return sum(not each.is_done and each.subject.point <= self.after for each in self.entries)

    @property
    def next(self) -> QueueEntry | None:
        """The subject to label; None: nothing is left after what was passed over."""
        return next((each for each in self.entries if not each.is_done and each.subject.point > self.after), None)


@dataclass(frozen=True, slots=True)
class PairOfPeople:
    """How far two people agree on subjects that both have labelled."""

    first: str
    second: str
    labels: int
    """Number of subjects that both have labelled, without those of which one is unsure."""
    agreed: int
    kappa: float | None
    """Cohen's kappa; of numbers and categories each different one is a category."""
    interval: Interval | None
    """Its 95 % interval; None with too few subjects or sessions, or several probabilities."""


def queue_of(
    subjects: Sequence[ReviewSubject], labels: Sequence[ReviewLabel], annotator: str, after: float = -1.0
) -> Queue:
    """Returns the queue of a person.

    Args:
        subjects: The subjects, in the order in which they are offered.
        labels: The labels of all people, the latest first.
        annotator: The person.
        after: The point up to which the person has come.
    """
    own: dict[Identity, ReviewLabel] = {}
    for each in labels:
        if each.label.annotator == annotator:
            own.setdefault(each.identity, each)
    return Queue([QueueEntry(each, own.get(each.identity)) for each in subjects], after)


def suggested_share(population: int) -> float:
    """Returns the least offered share with which `AT_ONCE` subjects and more are drawn; 1 if there are fewer.

    >>> suggested_share(1_000), suggested_share(900), suggested_share(10)
    (0.05, 0.1, 1.0)
    """
    return next((each for each in SHARES if each * population >= AT_ONCE), 1.0)


def pairs_of_people(labels: Sequence[ReviewLabel]) -> list[PairOfPeople]:
    """Returns how far each two people agree on what was drawn at random, those with the most in common first."""
    said: dict[tuple[Identity, int | None], dict[str, tuple[str, float]]] = defaultdict(dict)
    for each in labels:
        label = each.label
        if label.drawn == "random" and (answer := _answer_of(label)) is not None:
            weight = 1 / (label.inclusion_probability or 1.0)
            said[each.identity, label.subject.revision].setdefault(label.annotator, (answer, weight))
    both: dict[tuple[str, str], list[AnswerOfTwo]] = defaultdict(list)
    for (identity, _), answers in said.items():
        for first, second in combinations(sorted(answers), 2):
            (of_first, weight), (of_second, _) = answers[first], answers[second]
            both[first, second].append(AnswerOfTwo(identity[0], of_first, of_second, weight))
    found = [_pair(names, answers) for names, answers in both.items()]
    return sorted(found, key=lambda each: (-each.labels, each.first, each.second))


def _answer_of(label: Label) -> str | None:
    """Returns what a person said; None for unsure."""
    if label.value is not None:
        return f"{label.value:.15g}"
    return label.category or (label.verdict if label.verdict != "unsure" else None)


def _pair(names: tuple[str, str], answers: Sequence[AnswerOfTwo]) -> PairOfPeople:
    # SciPy is imported where it is needed: a page without two people is shown without it.
    from traceweir.streams.base.statistics.answer_agreement import AnswerPair, category_agreement

    found = category_agreement([AnswerPair(each.first, each.second, each.session, each.weight) for each in answers])
    agreed = sum(each.first == each.second for each in answers)
    kappa, interval = (found.kappa, found.kappa_interval) if found else (None, None)
    return PairOfPeople(*names, len(answers), agreed, kappa, interval)
