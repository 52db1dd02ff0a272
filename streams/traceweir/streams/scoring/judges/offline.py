"""Provides the judge of a process that scores without Kafka; a file stores its verdicts and spending."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from traceweir.schemas.judge_config import JudgeConfig, Retries
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.judge import Judge
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings

# A plan that asks no judge needs none of it.
if TYPE_CHECKING:
    from traceweir.streams.scoring.judges.service import Judging

log = logging.getLogger(__name__)

_UNREACHABLE = Retries(attempts=3, initial_s=1.0, jitter_s=0.0)
"""Retries of a judge to which no connection can be made: they end after 3 s, instead of some minutes."""


@contextmanager
def judging_from_file(plan: Plan, settings: Settings, judge: JudgeConfig | None = None) -> Iterator[Judging | None]:
    """Yields a `Judging` that is open during the `with` block; None if no criterion of the plan asks a judge.

    Args:
        plan: The criteria, with the section that is searched for names of models that nobody asks.
        settings: Address and key of the judges' API, and the path of the verdict file.
        judge: How the judges are asked; None: as the section of the plan says.

    Raises:
        JudgeUnavailableError: the [judge] extra is not installed, or the file cannot be used.
    """
    judge = judge or plan.judge
    if not plan.judged:
        yield None
        return
    from traceweir.streams.scoring.judges.client import Access
    from traceweir.streams.scoring.judges.litellm_setup import check_judge
    from traceweir.streams.scoring.judges.models import scorers_of
    from traceweir.streams.scoring.judges.service import Judging
    from traceweir.streams.scoring.judges.unused_names import unused_names
    from traceweir.streams.scoring.judges.verdict_file import JudgeFile

    check_judge()
    for sentence in unused_names(plan, settings.judge_api_base):
        log.warning("%s", sentence)
    with JudgeFile(settings.judge_cache, judge.cache) as file:
        access = Access.of(settings)
        # Somebody waits for this command, and an address that is wrong stays wrong. A server that restarts is back soon.
        attempts = min(_UNREACHABLE.attempts, judge.retries.attempts)
        unreachable = _UNREACHABLE.model_copy(update={"attempts": attempts})
        judging = Judging(
            judge,
            access,
            utc_now,
            store=file,
            note=file.pay,
            unreachable=unreachable,
            criteria=scorers_of(plan),
        )
        for paid in file.paid():
            judging.budget.record_spend(paid)
        yield judging


@contextmanager
def judges_from_file(plans: Iterable[Plan], settings: Settings) -> Iterator[Mapping[str, Judge | None]]:
    """Yields each plan's judge by the plan's digest, open during the `with` block; None for a plan that asks no judge.

    Args:
        plans: The criteria of each file.
        settings: Address and key of the judges' API, and the path of the verdict file.

    Raises:
        JudgeUnavailableError: the [judge] extra is not installed, or the file cannot be used.
    """
    judges: dict[str, Judge | None] = {}
    with ExitStack() as stack:
        for plan in plans:
            if plan.digest not in judges:
                judging = stack.enter_context(judging_from_file(plan, settings))
                judges[plan.digest] = judging.session() if judging else None
        yield judges
