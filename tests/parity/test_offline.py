"""Holds scores without Kafka against those of the version that kept the whole input in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.parity.record_offline import scored
from tests.support.offline_inputs import CASES, RECORDED


@pytest.mark.slow
@pytest.mark.timeout(600)  # 5,000 vectors on a busy machine
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.large) if name.startswith("5,000") else name for name in CASES]
)
def test_every_score_and_problem_is_the_recorded_one_in_the_recorded_order(name: str, tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text())[name]

    assert scored(CASES[name], tmp_path) == recorded
