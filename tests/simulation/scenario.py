"""What the workers of a simulation do: their stages, their config, and the records that are sent to them."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from tests.audit import spans
from tests.support.certificates import certified_gate
from tests.support.ledger import Ledger, Sending
from tests.support.span_ledger import SpanLedger
from tests.support.unsteady import METRIC as UNSTEADY
from tests.support.unsteady import offer_plugin

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.metrics.completeness import completeness
from traceweir.streams.base.topics import ALL_STAGES, STAGES, StageName

Kind = Literal["records", "judged", "spans", "alerts"]
KINDS: dict[Kind, float] = {"records": 0.6, "judged": 0.2, "spans": 0.2}
"""The share of seeds of each kind; in some of the higher seeds, processes watch scores in place of workers (`ALERTS`)."""
PREFIX = "traceweir."
TRAJECTORY = "tool_trajectory_avg_score"
JUDGED = "safety_v1"
APPS = ("agent", "shop")
"""The apps of the load, if configs are pushed."""
ADDED = "completeness"
"""A metric of the changed config of a worker."""
GATE = {"threshold": 0.65, "required": [TRAJECTORY], "cache_size": 120}
JUDGE = {
    "timeout_s": 4,
    "retries": {"attempts": 3, "initial_s": 0.5, "max_s": 2, "jitter_s": 0.2},
    "breaker": {"failures": 5, "open_s": 3},
    "retry_later": {"after_s": 4, "attempts": 1000},
    "prices": {"openai/judge": {"input": 1, "output": 2}},
}
VARIABLES: dict[str, Any] = {
    "topic_prefix": PREFIX,
    "otlp_spans_topic": f"{PREFIX}otlp_spans",
    "otlp_logs_topic": f"{PREFIX}otlp_logs",
    "embedder": "hashing",
    "close_linger_s": 0.5,
    "idle_gap_s": 4,
    "grace_s": 240.0,
    "guard_s": 900.0,
    "session_timeout_s": 6.0,
    "heartbeat_interval_s": 1.5,
    "score_timeout_s": 8.0,
}


class Load(Protocol):
    """A ledger of records to send. Times are in seconds since 1970."""

    def records(self, count: int, now: float) -> list[Sending]:
        """Returns the next records, at least `count`."""

    def rest(self, now: float) -> list[Sending]:
        """Returns all remaining records."""


@dataclass(frozen=True)
class Scenario:
    """What is determined before anything happens."""

    seed: int
    kind: Kind
    config: dict[str, Any]
    """The evaluation config."""
    changed_config: dict[str, Any]
    """The config of workers that a fault has given another one."""
    stages: tuple[StageName, ...] = STAGES
    variables: dict[str, Any] = field(default_factory=lambda: VARIABLES)
    """Settings by the names of their fields."""
    static_members: bool = False
    """Whether each worker is a static member of the group."""
    records: int = 150
    """Number of records of the load, without those that complete its sessions."""
    pause_s: float = 0.6
    """Mean time between two faults, and between two parts of the load, in seconds."""
    distance_s: float = 0.0
    """Time that each message between a worker and a node takes at least, in seconds."""
    pushes: bool = False
    """Whether configs are pushed while the workers run."""
    certified: bool = False
    """Whether configs require certificates of the judge, and have some of them."""
    away: bool = False
    """Whether workers are away for so long that compaction removes tombstones which they have not read."""
    partitions_added: bool = False
    """Whether inputs get more partitions."""
    wrong_clocks: bool = False
    """Whether clocks of workers are wrong by hours."""

    replays_together: bool = False
    """Whether a second replay follows each replay, while the first can still run."""

    bytes_per_s: float = 0.0
    """Bytes of records that each node takes in a second, by the measure of `BYTES_SCALE`; 0: any number."""
    backlog: int = 10
    """Number of records that are sent before the other ones, at once."""

    @property
    def takeover_s(self) -> float:
        """About how long a takeover lasts, in seconds."""
        return 2.5 + 50 * self.distance_s

    @property
    def stages_raise(self) -> bool:
        """Whether stages can raise.

        On nodes that take few bytes a second, the isolation of a record can hold a partition for minutes, because Kafka ends
        its transactions too. Strays of this partition then come after the grace of their sessions, which the audit does not
        expect.
        """
        return not self.bytes_per_s

    def load(self) -> Ledger | SpanLedger:
        """Returns the load."""
        if self.kind == "spans":
            return SpanLedger(self.seed, live=8)
        unsteady, without = (2.0, ("kills-once",)) if self.kind == "records" else (0.0, ())
        return Ledger(
            self.seed,
            live=8,
            late=0.05,
            former=0.0 if self.away else 0.004,  # these are older than the short guard of such a seed
            former_s=450.0,
            away_s=1500.0,
            unsteady=unsteady,
            without=without,
            apps=APPS if self.pushes else (),
        )


def warm_up(folder: Path) -> None:
    """Loads what each simulation needs, so that processes which are forked afterwards need not load it.

    Args:
        folder: A folder for the scorer that fails, which is a plug-in. It must stay until the last simulation ends.
    """
    offer_plugin(folder)
    sys.path.insert(0, str(folder))
    for seed in range(20):
        read_plan(draw(seed).changed_config)
    completeness("Please book a hotel and cancel the flights", "It is booked")  # loads a dictionary


LOW_SEEDS = 1_000
"""Seeds up to this one push no configs and have one scoring process, so that the bugs which need neither are found sooner."""
DISTANT = 0.2
"""The share of the higher seeds without spans in which the nodes are in another region than the workers, all the time.

With spans, a worker that reads late publishes traces without their late spans, which the load does not expect.
"""
PUSHED = 0.5
"""The share of the higher seeds in which configs are pushed."""
DELETE_RETENTION_S = 60.0
"""`delete.retention.ms` of the compacted topics in the seeds in which workers are away, in seconds."""
AWAY_GUARD_S = 270.0
"""The guard in these seeds, in seconds: a closed session leaves no row after it, so that an old row makes it open again."""
AWAY = 0.15
"""The share of the higher seeds in which a worker is away for longer than this, with its disk."""
WRONG_CLOCKS = 0.15
"""The share of the higher seeds without spans and with near nodes in which clocks of workers are wrong by hours."""
WRONG_CLOCKS_PAUSE_S = 2.0
"""Mean time between two faults in these seeds, in seconds: workers live for long enough to work with a wrong clock."""

SLOW_NODES = 0.1
"""The share of the seeds above `LOW_SEEDS` that have no other peculiarity, and no spans, in which nodes take few bytes."""
BYTES_SCALE = 100
"""A byte of these seeds counts for so many bytes: the limits in bytes of the product are divided by it."""
BYTES_PER_S = (4_000.0, 8_000.0, 16_000.0)
BACKLOG = 200
"""Number of records that wait in these seeds when the workers have started."""

REPLAYS_TOGETHER = 0.5
"""The share of the seeds above `LOW_SEEDS` that have nothing of the above, and no spans, in which replays come in pairs."""

ALERTS = 0.08
"""The share of the higher seeds in which processes watch scores, and no worker runs."""

SETTLING = 0.5
"""The share of the higher seeds with a judge in which the judge waits for later revisions."""
SETTLE_S = 6.0
"""How long it waits, in seconds: some later revisions come in this time, and some after it."""

PARTITIONS_ADDED = 0.15
"""The share of the higher seeds without spans in which inputs get more partitions while the workers run.

With spans, the workers publish traces without the spans on partitions that they have not noticed yet, which the load does
not expect.
"""


def draw(seed: int) -> Scenario:
    """Returns the scenario of a seed."""
    rnd = random.Random(f"scenario {seed}")
    if seed > LOW_SEEDS and random.Random(f"watch {seed}").random() < ALERTS:
        return Scenario(seed, "alerts", {}, {}, pause_s=rnd.choice((0.2, 0.4, 0.8)))
    (kind,) = rnd.choices([*KINDS], [*KINDS.values()])
    static, pause_s = rnd.random() < 0.3, rnd.choice((0.2, 0.4, 0.8))
    variables = VARIABLES | {
        "score_window": rnd.choice((8, 40, 2_000)),
        "score_concurrency": rnd.choice((4, 32)),
        # A plan with a judge has one in every case. The low seeds have one, so that those of the bugs stay the same.
        "scoring_processes": 1 + seed % 2 if seed > LOW_SEEDS else 1,
    }
    if _is_away(seed):
        variables["guard_s"] = AWAY_GUARD_S
    elif kind != "spans" and (_distance_s(seed) or _bytes_per_s(seed)):
        # Strays of a partition that nobody reads for minutes must still be in the grace of their sessions.
        variables |= {"grace_s": 400.0}
    if kind == "spans":
        grace_s = rnd.choice((8.0, 20.0))
        variables |= {"trace_grace_s": grace_s, "trace_idle_s": grace_s}
        config: dict[str, Any] = spans.CONFIG
        return Scenario(seed, kind, config, config, ALL_STAGES, variables, static, 60, pause_s, away=_is_away(seed))
    pushes = seed > LOW_SEEDS and random.Random(f"pushes {seed}").random() < PUSHED
    criteria: dict[str, Any] = {TRAJECTORY: 0.5}
    config = {"criteria": criteria, "gate": GATE}
    if kind == "judged":
        criteria[JUDGED] = {"threshold": 0.5, "judge_model_options": {"judge_model": "openai/judge", "num_samples": 1}}
        config["judge"] = JUDGE
        if settles(seed):
            criteria[JUDGED]["settle_s"] = SETTLE_S
        if pushes:
            # The low seeds require no verdict of a judge, so that those of the bugs stay the same.
            config["gate"] = certified_gate(config, GATE, JUDGED, random.Random(f"certificates {seed}"))
    else:
        criteria[UNSTEADY] = {"threshold": 0, "notes": "nowhere"}  # the scorer ends no process here
    changed = config | {"criteria": {**criteria, ADDED: 0.5}}
    wrong_clocks = _has_wrong_clocks(seed)
    bytes_per_s = _bytes_per_s(seed)
    return Scenario(
        seed,
        kind,
        config,
        changed,
        variables=variables,
        static_members=static,
        records=90 if kind == "judged" else 150,
        pause_s=WRONG_CLOCKS_PAUSE_S if wrong_clocks else Scenario.pause_s,
        distance_s=_distance_s(seed),
        pushes=pushes,
        certified=pushes and kind == "judged",
        away=_is_away(seed),
        wrong_clocks=wrong_clocks,
        bytes_per_s=bytes_per_s,
        backlog=BACKLOG if bytes_per_s else Scenario.backlog,
        replays_together=_has_replays_together(seed),
        partitions_added=seed > LOW_SEEDS and random.Random(f"more partitions {seed}").random() < PARTITIONS_ADDED,
    )


def settles(seed: int) -> bool:
    """Returns whether the judge of a seed waits for later revisions."""
    return seed > LOW_SEEDS and random.Random(f"settles {seed}").random() < SETTLING


def _is_away(seed: int) -> bool:
    return seed > LOW_SEEDS and random.Random(f"away {seed}").random() < AWAY


def _has_wrong_clocks(seed: int) -> bool:
    drawn = seed > LOW_SEEDS and random.Random(f"wrong clocks {seed}").random() < WRONG_CLOCKS
    return drawn and not _distance_s(seed)


def _distance_s(seed: int) -> float:
    rnd = random.Random(f"distance {seed}")
    distant = seed > LOW_SEEDS and rnd.random() < DISTANT and not _is_away(seed)
    return rnd.choice((0.1, 0.3, 0.5)) if distant else 0.0


def _bytes_per_s(seed: int) -> float:
    rnd = random.Random(f"slow nodes {seed}")
    slow = seed > LOW_SEEDS and rnd.random() < SLOW_NODES
    return rnd.choice(BYTES_PER_S) if slow and not _is_peculiar(seed) else 0.0


def _has_replays_together(seed: int) -> bool:
    drawn = seed > LOW_SEEDS and random.Random(f"replays together {seed}").random() < REPLAYS_TOGETHER
    return drawn and not _is_peculiar(seed) and not _bytes_per_s(seed)


def _is_peculiar(seed: int) -> bool:
    return _is_away(seed) or bool(_distance_s(seed)) or _has_wrong_clocks(seed)
