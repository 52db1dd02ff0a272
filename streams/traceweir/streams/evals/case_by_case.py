"""Cases scored one at a time, as pytest runs tests, and yet by one judge, whose limits, budget and breaker hold for all of them."""

from __future__ import annotations

import asyncio
import sys
import warnings
from contextlib import ExitStack
from dataclasses import replace

from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.judge import Judge
from traceweir.streams.clock import utc_now
from traceweir.streams.evals.results import CaseResult
from traceweir.streams.evals.scoring import ScoredFile, score_files
from traceweir.streams.judges.client import ignore_litellms_warnings
from traceweir.streams.judges.errors import JudgeUnavailableError
from traceweir.streams.judges.offline import judging_from_file
from traceweir.streams.settings import load_settings


class CaseByCase:
    """Scores cases as they come.

    Raises:
        InvalidSettingsError: the environment cannot be used.
    """

    def __init__(self) -> None:
        self._settings = load_settings()
        self._judges: dict[str, Judge | None] = {}
        self._open = ExitStack()
        # With a factory of its own the runner leaves the thread's current loop alone, which belongs to other tests.
        self._runner = self._open.enter_context(asyncio.Runner(loop_factory=asyncio.new_event_loop))

    def score(self, scored: ScoredFile) -> CaseResult:
        """Score the one case of a file, and pool its runs.

        Raises:
            JudgeUnavailable: a criterion asks a judge, and what asks is not installed, or what it said cannot be remembered.
        """
        with warnings.catch_warnings():
            ignore_litellms_warnings()  # pytest forgets after each test what was ignored in it
            report = self._runner.run(
                score_files(
                    [replace(scored, judge=self._judge(scored.plan))],
                    now=utc_now,
                    pooled=True,
                    timeout_s=self._settings.score_timeout_s,
                    judge_timeout_s=self._settings.judge_timeout_s,
                )
            )
        [result] = report.cases
        return result

    def close(self) -> None:
        """Give back what judging took. What cannot be closed is said, and fails nothing: every case has its verdict by now."""
        try:
            self._open.close()
        except JudgeUnavailableError as error:
            sys.stderr.write(f"{error}\n")

    def _judge(self, plan: Plan) -> Judge | None:
        if plan.digest not in self._judges:
            judging = self._open.enter_context(judging_from_file(plan, self._settings))
            self._judges[plan.digest] = judging.session() if judging else None
        return self._judges[plan.digest]
