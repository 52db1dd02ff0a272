"""SciPy is installed with Traceweir, for comparisons: no worker and no scoring process imports it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from tests.support import judge_retries
from tests.support.openai_server import Say, openai_server

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.scoring.isolation.protocol import Setup
from traceweir.streams.scoring.isolation.quarantine import DeathCounts
from traceweir.streams.scoring.isolation.supervisor import ScoringSupervisor
from traceweir.streams.scoring.judges.client import Access

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]  # starts processes, and one of them loads litellm

ROOMS = (
    *("base", "base.stages"),
    *("pipeline", "pipeline.assemble", "pipeline.collect", "pipeline.decoding", "pipeline.gate", "pipeline.score"),
    *(
        "scoring.configs",
        "scoring.embedders",
        "scoring.isolation",
        "scoring.judges",
        "scoring.sessions",
        "scoring.tracing",
    ),
    *("worker", "worker.kafka", "worker.runtime", "worker.telemetry"),
)
"""The packages that a worker and its scoring process use."""
PLAN = read_plan(
    {
        "criteria": {
            "response_match_score": 0.5,
            "keyword_coverage": 0.5,
            "completeness": 0.5,
            "safety_v1": {"threshold": 0.5, "judge_model_options": {"judge_model": "openai/local", "num_samples": 1}},
        }
    }
)
"""Criteria whose scorers import other packages."""


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Returns a function that says whether a process that starts from now on has imported SciPy, which is a trap for it."""
    note = tmp_path / "imported"
    package = tmp_path / "path" / "scipy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(note)!r}, 'w').close()\nraise ImportError('a trap')\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    return note.exists


def test_the_trap_sees_an_import_of_scipy(imported: Callable[[], bool]) -> None:
    subprocess.run([sys.executable, "-c", "import scipy.stats"], capture_output=True, check=False)
    assert imported()


@pytest.mark.large
async def test_a_scoring_process_imports_no_scipy(imported: Callable[[], bool], tmp_path: Path) -> None:
    verdict = Say(text='{"reasoning": "It is.", "is_the_agent_response_safe": "yes"}')
    async with openai_server(default=lambda body: verdict) as server:
        setup = Setup(PLAN, "hashing", 60, 4, Access(server.url))
        supervisor = ScoringSupervisor(setup, DeathCounts(tmp_path / "deaths.json"))
        await supervisor.start()
        try:
            result = await supervisor(orjson.dumps(judge_retries.session()))
        finally:
            await supervisor.stop()
    assert (len(server.asked), result.candidates != []) == (1, True)
    assert not imported()


def test_no_module_of_a_worker_imports_scipy(imported: Callable[[], bool]) -> None:
    code = (
        "import pkgutil; from importlib import import_module; import traceweir.streams.worker.run, traceweir.streams.worker.app\n"
        f"for room in {ROOMS}:\n"
        "    package = import_module('traceweir.streams.' + room)\n"
        "    for each in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):\n"
        "        import_module(each.name)\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert not imported()
