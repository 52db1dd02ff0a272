"""Combines a ledger with the committed records, as the evidence for every claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from tests.audit.committed import CommittedRecords, Document, Row
from tests.audit.config_topic import FILE, ConfigTopic
from tests.support.ledger import POISON, Ledger

Place = tuple[str, int]
"""A session's id and the number of a segment."""
Version = tuple[str, int, int]
"""A session's id and the numbers of a segment and a revision."""
Attempt = tuple[str, int, int, int]
"""A session's id and the numbers of a segment, a revision, and an attempt to score it."""


class Published(NamedTuple):
    """A record of `sessions`."""

    row: Row
    document: Document

    @property
    def place(self) -> Place:
        """The segment of the record."""
        return self.document["session_id"], self.document["segment"]

    @property
    def version(self) -> Version:
        """The segment and revision of the record."""
        return *self.place, self.document["revision"]


class Letter(NamedTuple):
    """A dead letter."""

    row: Row
    topic: str
    reason: str
    detail: str
    partition: int
    offset: int


class Evidence:
    """The ledger and the committed records, parsed and sorted.

    Args:
        ledger: What was sent.
        committed: What was committed.
        config: The evaluation config of the workers' files.
        optional: Metrics that some of the workers measure.
        judged: The metric for which the workers ask a judge; None: there is none.
        configs: What the topic `configs` says; by default nothing was pushed.
        wrong_clocks: Whether clocks of workers were wrong by hours.
    """

    def __init__(
        self,
        ledger: Ledger,
        committed: CommittedRecords,
        config: Document,
        *,
        optional: Collection[str] = (),
        judged: str | None = None,
        configs: ConfigTopic | None = None,
        wrong_clocks: bool = False,
    ) -> None:
        self.wrong_clocks = wrong_clocks
        """Whether clocks of workers were wrong by hours, so that sessions closed before their time."""
        self.ledger, self.committed, self.rows = ledger, committed, committed.rows
        self.config, self.gate = config, config["gate"]
        self.configs = configs or ConfigTopic([])
        """What the topic `configs` says."""
        self.settled: Mapping[int, int] = {}
        """By partition, the offset of `sessions` from which on the last state of that topic counts."""
        self.refused_configs: Collection[tuple[bytes | None, bytes | None]] = ()
        """The keys and values of the records of that topic that must be dead letters."""
        self.optional = optional
        self.judged = judged if judged in config["criteria"] else None
        self.verdicts: list[tuple[str, bool]] = []
        """What the judges have answered: the question, and the verdict. The rationale of a score names the place."""
        self.useless: set[str] = set()
        """The questions to which a judge has replied without a verdict."""
        self.sessions = [Published(row, row.document) for row in _in_order(self.rows["sessions"])]
        self.results = [row.document for row in self.rows["results"]]
        self.candidates = [(row, row.document) for row in _in_order(self.rows["candidates"])]
        self.letters = [letter_of(row) for row in self.rows["dead-letters"] if replay_mark(row) is None]
        self.revisions: dict[Place, list[Published]] = defaultdict(list)
        """The records of each segment in the order of their partition, by segment."""
        for each in self.sessions:
            self.revisions[each.place].append(each)
        self.last = {place: published[-1] for place, published in self.revisions.items()}
        self._last_attempts: dict[Version, int] = {}
        for found in self.results:
            version = found["session_id"], found["segment"], found["revision"]
            self._last_attempts[version] = max(found["attempt"], self._last_attempts.get(version, 0))
        self.superseded = set(self._unanswered())
        """The revisions that need no scores, because the next revision arrived before they were scored."""
        self.gate_scores: dict[tuple[str, int, int, int, str], Document] = {
            (found["trace_id"], found["segment"], found["revision"], found["attempt"], found["metric"]): found
            for found in self.results
            if found["level"] == "trace"
        }
        """The scores of the gate by trace, segment, revision, attempt and metric."""
        self.verdict_scores: dict[tuple[Attempt, str], Document] = {
            ((found["session_id"], found["segment"], found["revision"], found["attempt"]), found["metric"]): found
            for found in self.results
            if found["level"] == "session"
        }
        """The scores of whole sessions by attempt and metric; the gate's decisions rest on them."""

    @cached_property
    def digests(self) -> Mapping[Version, set[str]]:
        """The digests of the configs of each revision's scores, those of the gate and of retries included."""
        found: dict[Version, set[str]] = defaultdict(set)
        for each in self.results:
            version = each["session_id"], each["segment"], each["revision"]
            found[version].add(self.configs.name(each["config_digest"]))
        return found

    def config_of(self, version: Version) -> Document:
        """Returns the config by which a revision was scored; that of the file if it has no scores."""
        (digest, *_) = sorted(self.digests.get(version, {FILE}))
        return self.configs.documents.get(digest, self.config)

    def is_by_file(self, version: Version) -> bool:
        """Returns whether a revision was scored by the config file of a worker."""
        return self.config_of(version) is self.config

    def poisonous(self, session: str) -> bool:
        """Returns whether a session can only become a dead letter."""
        return session.endswith(f"~{POISON}")

    def scored(self) -> Iterator[Published]:
        """Returns every record of `sessions` that must have scores."""
        return (
            each for each in self.sessions if not self.poisonous(each.place[0]) and each.version not in self.superseded
        )

    def attempts(self, version: Version) -> int:
        """Returns how often a revision was scored with success: once, and once more for each answer of a judge later."""
        return 1 + self._last_attempts.get(version, 0)

    def _unanswered(self) -> Iterator[Version]:
        scored = {(each["session_id"], each["segment"], each["revision"]) for each in self.results}
        dead_lettered = {(each.partition, each.offset) for each in self.letters if each.topic == "sessions"}
        for published in self.revisions.values():
            for each in published[:-1]:
                if each.version not in scored and (each.row.partition, each.row.offset) not in dead_lettered:
                    yield each.version


def replay_mark(row: Row) -> str | None:
    """Returns the id of the dead letter of which a record says that it was replayed; None for a dead letter."""
    return next((content.decode() for name, content in row.headers if name == "traceweir.replayed"), None)


Claim = Callable[[Evidence], Iterator[str]]
"""Yields one sentence for each fault; yields none if the claim in its name holds."""


def accepted(decision: Document) -> bool:
    """Returns whether the gate accepted a trace."""
    return bool(decision["details"]["decision"] == "accepted")


def _in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row[:2])


def letter_of(row: Row) -> Letter:
    """Returns a dead letter with what its headers tell."""
    about = {name: content.decode() for name, content in row.headers if name.startswith("traceweir.")}
    return Letter(
        row,
        about["traceweir.topic"].rpartition(".")[2],
        about["traceweir.reason"],
        about["traceweir.detail"],
        int(about["traceweir.partition"]),
        int(about["traceweir.offset"]),
    )
