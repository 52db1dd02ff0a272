"""The simulated cluster gives the same answers as Apache Kafka to drawn scripts of client calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from tests.simulation.conformance import PARTITIONS, Asker, draw

pytestmark = pytest.mark.kafka

SEEDS = range(1, 25)


@pytest.fixture(scope="module")
def simulated() -> dict[int, list[Any]]:
    """The answers of the simulated cluster, from a process of its own, whose clocks are replaced."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.conformance", *map(str, SEEDS)],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(SEEDS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
async def test_both_clusters_give_the_same_answers(
    seed: int, simulated: dict[int, list[Any]], kafka: str, prefix: str
) -> None:
    topic = f"{prefix}script"
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    await admin.close()
    script = draw(seed)
    answers = json.loads(json.dumps(await Asker(kafka, topic).play(script)))
    unlike = [each for each in zip(script, answers, simulated[seed], strict=True) if each[1] != each[2]]
    assert not unlike
    assert sum(isinstance(answer, int) for answer in answers) > 2
