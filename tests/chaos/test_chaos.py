"""Under faults of workers, scorers, disks and nodes no record is lost, doubled or changed.

These tests run a few rounds of `python -m tests.chaos`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.audit.claims import HEADINGS
from tests.chaos.ground import Ground
from tests.chaos.round import play
from tests.chaos.scenario import Scenario, draw
from tests.chaos.span_round import play_spans
from tests.support.kafka import NEEDS_KAFKA

SEEDS = (106, 36, 44, 10)
"""One seed for each kind of round.

Two workers that are frozen and killed at drawn steps, with a node from which each byte takes 0.1 s; each stage in its own
process, with a full disk; three nodes, with one, then four, then two workers; and the embedded broker. The nodes of the
second and the third are distant for some seconds.
"""
LOAD_S = 25.0
SPANS_SEED, SPANS_LOAD_S = 14, 45.0
"""Two workers with the stage collect; state is lost, and workers are killed, frozen and replaced.

The faults come while spans arrive, and while traces are published.
"""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with Ground(tmp_path_factory.mktemp("ground")) as ground:
        yield ground


def scenario_of(seed: int, ground: Ground) -> Scenario:
    scenario = draw(seed, impossible=[*ground.impossible], load_s=LOAD_S)
    if scenario.broker not in ground.brokers:
        pytest.skip(NEEDS_KAFKA)
    return scenario


@pytest.mark.chaos
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_record_is_lost_doubled_or_changed_under_faults(seed: int, ground: Ground, tmp_path: Path) -> None:
    scenario = scenario_of(seed, ground)

    line = play(scenario, *ground.of(scenario), tmp_path).line()

    sys.stdout.write(json.dumps(line, indent=1, ensure_ascii=False))
    assert line["found"] == {}
    assert sum(line["faults"].values()) >= 3, f"fewer than 3 faults happened: {line['faults']}"
    assert {heading: line[heading] for heading in HEADINGS} == dict.fromkeys(HEADINGS, 0)


@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_spans_give_the_documents_and_scores_of_the_offline_reading_under_faults(
    ground: Ground, tmp_path: Path
) -> None:
    if "kafka" not in ground.brokers:
        pytest.skip(NEEDS_KAFKA)
    scenario = draw(SPANS_SEED, impossible=["disk full"], load_s=SPANS_LOAD_S, spans=True)

    line = play_spans(scenario, *ground.of(scenario), tmp_path).line()

    sys.stdout.write(json.dumps(line, indent=1, ensure_ascii=False))
    assert line["found"] == {}
    assert sum(line["faults"].values()) >= 3, f"fewer than 3 faults happened: {line['faults']}"
    assert line["committed"]["traces"] > 100


@pytest.mark.chaos
def test_every_fault_is_possible_on_this_machine(ground: Ground) -> None:
    if ground.impossible:
        pytest.skip("; ".join(f"{kind}: {why}" for kind, why in ground.impossible.items()))
