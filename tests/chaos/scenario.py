"""Draws the faults and the load of a round from its seed, before the round starts."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from tests.support.dying_worker import MOMENTS, STEPS, WITHOUT_TRANSACTIONS

from traceweir.streams.base.topics import ALL_STAGES, STAGES, StageName

Kind = Literal[
    "killed",
    "killed at a step",
    "frozen",
    "frozen and replaced",
    "terminated",
    "scaled",
    "state lost",
    "node killed",
    "distant broker",
    "slow bytes",
    "disk full",
    "scorer killed",
    "scorer frozen",
    "stage raises",
    "config pushed",
    "record that is no config",
]
Broker = Literal["kafka", "embedded"]

SHARES: dict[Kind, float] = {
    "killed": 2,
    "killed at a step": 4,
    "frozen": 2,
    "frozen and replaced": 2,
    "terminated": 1,
    "state lost": 1,
    "node killed": 3,
    "disk full": 0.7,
    "scorer killed": 0.7,
    "scorer frozen": 0.4,
}
SCORERS: Collection[Kind] = ("scorer killed", "scorer frozen")
UNFENCED: Collection[Kind] = ("killed", "killed at a step", "terminated", "state lost", "scorer killed")
"""The faults for a broker without transactions. Such a broker cannot fence a worker that is resumed after a freeze."""
PUSHES: Collection[Kind] = ("config pushed", "record that is no config")
PUSHED = 0.5
"""The share of the rounds on Apache Kafka in which configs are pushed."""
PUSH_EVERY_S, REFUSED_EVERY_S = 4.0, 10.0
LONGER_THAN_THE_SESSION_S = (7.0, 11.0)
NETWORK: Collection[Kind] = ("distant broker", "slow bytes")
"""The faults of the networks between the workers and the nodes."""
DISTANT = 0.2
"""The share of the rounds on Apache Kafka in which the nodes are in another region than the workers all the time."""
SLOWED = 0.3
"""The share of these rounds in which the nodes are distant for some seconds only. Bytes are slow in both shares."""
DISTANCES_S = (0.05, 0.3)
BYTES_A_SECOND = (10_000.0, 200_000.0)
"""Of the bytes that a worker sends to a node in these rounds. Without a limit, it sends some 300 kB a second."""


class Drawn(NamedTuple):
    """One fault."""

    at_s: float
    """When the fault happens, in seconds after the start of the load."""
    kind: Kind
    pick: float
    """Which worker or node, from 0 to 1."""
    for_s: float = 0.0
    """How long the fault lasts, in seconds, if it does not end by itself."""
    death: tuple[str, str, int] | None = None
    """Step, moment and count."""
    workers: int = 0
    """The number of workers after scaling."""
    stage: str = ""
    """The stage that raises."""
    delay_s: float = 0.0
    """Time that each byte is under way in each direction, in seconds."""
    bytes_a_second: float = 0.0
    """Limit of what each connection of a worker carries to a node."""


@dataclass(frozen=True)
class Scenario:
    """The load and the faults of a round."""

    seed: int
    broker: Broker
    nodes: int
    workers: int
    split: bool
    """Whether each stage is its own application with its own processes."""
    poisonous: int
    """Number of sessions that block the scoring process without end."""
    load_s: float
    rate: int
    """Records per second."""
    faults: tuple[Drawn, ...]
    spans: bool = False
    """Whether the load consists of OTLP requests, which the stage collect reads."""

    distance_s: float = 0.0
    """Time that each byte between a worker and a node is under way at least, in seconds, in the whole round."""

    @property
    def slows_network(self) -> bool:
        """Whether the workers reach the nodes through networks that are slow at some time."""
        return bool(self.distance_s) or any(fault.kind in NETWORK for fault in self.faults)

    @property
    def takeover_s(self) -> float:
        """About how much longer a takeover lasts than with near nodes, in seconds."""
        return 50 * self.distance_s

    @property
    def pushes(self) -> bool:
        """Whether configs are pushed."""
        return any(fault.kind in PUSHES for fault in self.faults)

    @property
    def stages(self) -> tuple[StageName, ...]:
        """The stages of the workers."""
        return ALL_STAGES if self.spans else STAGES

    @property
    def small_disk(self) -> bool:
        """Whether a worker's disk is filled."""
        return any(fault.kind == "disk full" for fault in self.faults)

    @property
    def harms_scorers(self) -> bool:
        """Whether a scoring process is killed or frozen."""
        return any(fault.kind in SCORERS for fault in self.faults)

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.broker}, {self.nodes} nodes, {self.workers} workers{' a stage' * self.split}, "
            f"{'spans, ' * self.spans}{'pushed configs, ' * self.pushes}"
            f"{f'{self.distance_s:.2f} s to each node, ' if self.distance_s else ''}"
            f"{len(self.faults)} faults"
        )

    def describe(self) -> dict[str, Any]:
        """Returns the part of the scenario that the file of rounds contains."""
        found = asdict(self)
        del found["seed"], found["faults"]
        return found


def draw(
    seed: int,
    *,
    brokers: Collection[Broker] = ("kafka", "embedded"),
    impossible: Collection[Kind] = (),
    load_s: float = 40.0,
    rate: int = 150,
    spans: bool = False,
) -> Scenario:
    """Returns the scenario of a seed.

    Args:
        seed: Determines the scenario.
        brokers: The allowed brokers; if both are allowed, every fifth seed runs on the embedded broker.
        impossible: Faults that are not possible on this machine or broker.
        load_s: Seconds of load.
        rate: Records a second.
        spans: Whether the load consists of OTLP requests. Such a round needs Apache Kafka, and its scorers have no
            faults.
    """
    if spans:
        brokers = ["kafka"]
        impossible = [*impossible, *SCORERS]
    rnd = random.Random(f"chaos {seed}")
    embedded = "kafka" not in brokers or ("embedded" in brokers and seed % 5 == 0)
    nodes = 1 if embedded or "node killed" in impossible or rnd.random() < 0.4 else 3
    workers = rnd.choice((1, 2, 2, 4))
    split = not embedded and workers < 4 and rnd.random() < 0.25
    if spans:  # four stages in processes of their own would be so many that starting them takes longer than the load
        workers, split = min(workers, 2), False
    scaled = not embedded and not split and rnd.random() < 0.25
    shares = {kind: share for kind, share in SHARES.items() if kind not in impossible}
    if nodes < 3:
        shares.pop("node killed", None)
    if embedded:
        shares = {kind: share for kind, share in shares.items() if kind in UNFENCED}
        load_s = min(load_s, 20.0)
    count = round(rnd.uniform(7, 10) * load_s / 40)
    moments = sorted(rnd.uniform(1, load_s) for _ in range(count))
    kinds = rnd.choices([*shares], [*shares.values()], k=count)
    # A second kill would make the sessions in progress poison.
    seen = False
    for place, kind in enumerate(kinds):
        if kind in SCORERS:
            kinds[place] = "killed" if seen else kind
            seen = True
    steps = WITHOUT_TRANSACTIONS if embedded else STEPS
    faults = [_fault(rnd, at, kind, steps) for at, kind in zip(moments, kinds, strict=True)]
    if scaled:
        workers = 1
        faults += [
            Drawn(load_s * rnd.uniform(0.1, 0.3), "scaled", 0, workers=4),
            Drawn(load_s * rnd.uniform(0.6, 0.8), "scaled", 0, workers=2),
        ]
    distance_s = 0.0
    if not embedded and not spans:
        faults += _pushes(random.Random(f"pushes {seed}"), load_s)
        if not any(kind in impossible for kind in NETWORK):
            distance_s, slowed = _network(random.Random(f"network {seed}"), load_s)
            faults += slowed
    faults += _stumbles(random.Random(f"stumbles {seed}"), load_s, ("collect", *ALL_STAGES) if spans else STAGES)
    return Scenario(
        seed=seed,
        broker="embedded" if embedded else "kafka",
        nodes=nodes,
        workers=workers,
        split=split,
        poisonous=0 if seen or spans else rnd.choice((0, 0, 1)),
        load_s=load_s,
        rate=rate,
        faults=tuple(sorted(faults)),
        spans=spans,
        distance_s=distance_s,
    )


def _stumbles(rnd: random.Random, load_s: float, stages: Sequence[str]) -> list[Drawn]:
    """Draws when stages raise. They have random numbers of their own, so that the other faults of a seed stay."""
    return [
        Drawn(rnd.uniform(1, load_s), "stage raises", rnd.random(), stage=rnd.choice(stages))
        for _ in range(round(load_s / 8))
    ]


def _pushes(rnd: random.Random, load_s: float) -> list[Drawn]:
    """Draws when configs are pushed, with random numbers of their own too; in the other rounds there are none."""
    if rnd.random() >= PUSHED:
        return []
    every: dict[Kind, float] = {"config pushed": PUSH_EVERY_S, "record that is no config": REFUSED_EVERY_S}
    return [
        Drawn(rnd.uniform(0, load_s), kind, 0)
        for kind, every_s in every.items()
        for _ in range(round(load_s / every_s))
    ]


def _network(rnd: random.Random, load_s: float) -> tuple[float, list[Drawn]]:
    """Draws how far the nodes are, and when their networks are slow, with random numbers of their own too."""
    share = rnd.random()
    if share >= DISTANT + SLOWED:
        return 0.0, []
    faults = [
        Drawn(rnd.uniform(1, load_s), "slow bytes", 0, rnd.uniform(3, 10), bytes_a_second=_between(rnd, BYTES_A_SECOND))
        for _ in range(rnd.randint(1, 2))
    ]
    if share < DISTANT:
        return rnd.uniform(*DISTANCES_S), faults
    return 0.0, faults + [
        Drawn(rnd.uniform(1, load_s), "distant broker", 0, rnd.uniform(5, 15), delay_s=rnd.uniform(*DISTANCES_S))
        for _ in range(rnd.randint(1, 2))
    ]


def _between(rnd: random.Random, limits: tuple[float, float]) -> float:
    """Draws a number of which the order of magnitude is drawn evenly."""
    return math.exp(rnd.uniform(*map(math.log, limits)))


def _fault(rnd: random.Random, at_s: float, kind: Kind, steps: Collection[str]) -> Drawn:
    pick, for_s, death = rnd.random(), 0.0, None
    if kind in ("frozen", "frozen and replaced"):
        for_s = rnd.uniform(*LONGER_THAN_THE_SESSION_S)
    elif kind == "node killed":
        for_s = rnd.uniform(2, 8)
    elif kind == "disk full":
        for_s = rnd.uniform(10, 15)  # a worker takes some seconds before it opens its state
    elif kind == "killed at a step":
        step = rnd.choice([*steps])
        often = (
            2 if step == "send_offsets_to_transaction" else 25
        )  # Offsets are sent once a second; the other steps come with every checkpoint.
        death = step, rnd.choice(MOMENTS), rnd.randint(1, often)
    return Drawn(at_s, kind, pick, for_s, death)
