"""Scores cases one at a time, as pytest runs tests, with one judge whose limits, budget and breaker cover all cases."""

from __future__ import annotations

import asyncio
import sys
import warnings
from contextlib import ExitStack
from dataclasses import replace

from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.judge import Judge
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import load_settings
from traceweir.streams.lab.evals.results import CaseResult
from traceweir.streams.lab.evals.scoring import ScoredFile, score_files
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
from traceweir.streams.scoring.judges.litellm_setup import ignore_litellms_warnings
from traceweir.streams.scoring.judges.offline import judging_from_file


class CaseByCase:
    """Scores one case per call.

    Raises:
        InvalidSettingsError: the environment cannot be used.
    """

    def __init__(self) -> None:
        self._settings = load_settings()
        self._judges: dict[str, Judge | None] = {}
        self._open = ExitStack()
        # With its own loop factory the runner does not replace the current loop of the thread, which other tests use.
        self._runner = self._open.enter_context(asyncio.Runner(loop_factory=asyncio.new_event_loop))

    def score(self, scored: ScoredFile) -> CaseResult:
        """Scores the only case of a file and pools its runs.

        Raises:
            JudgeUnavailableError: a criterion asks a judge, and the [judge] extra is missing or the verdict file cannot
                be used.
        """
        with warnings.catch_warnings():
            # pytest resets the warning filters after each test.
            ignore_litellms_warnings()
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
        """Closes the judges. An error is only written to stderr, because every case already has its verdict."""
        try:
            self._open.close()
        except JudgeUnavailableError as error:
            sys.stderr.write(f"{error}\n")

    def _judge(self, plan: Plan) -> Judge | None:
        if plan.digest not in self._judges:
            judging = self._open.enter_context(judging_from_file(plan, self._settings))
            self._judges[plan.digest] = judging.session() if judging else None
        return self._judges[plan.digest]
