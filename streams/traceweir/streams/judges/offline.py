"""The judge of a process that scores without Kafka: it remembers in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.judge import Judge
from traceweir.streams.clock import utc_now
from traceweir.streams.judges.client import Access, check_judge
from traceweir.streams.judges.service import Judging
from traceweir.streams.judges.verdict_file import JudgeFile
from traceweir.streams.settings import Settings


@contextmanager
def judging_from_file(plan: Plan, settings: Settings) -> Iterator[Judging | None]:
    """What asks judges for as long as the `with` block lasts; None where no criterion of the plan asks one.

    Args:
        plan: What is measured.
        settings: Where judges are asked, and in which file their verdicts are.

    Raises:
        JudgeUnavailable: what asks is not installed, or the file cannot be used.
    """
    if not plan.judged:
        yield None
        return
    check_judge()
    with JudgeFile(settings.judge_cache, plan.judge.cache) as file:
        access = Access(settings.judge_api_base, settings.judge_api_key)
        judging = Judging(plan.judge, access, utc_now, store=file, note=file.pay)
        for paid in file.paid():
            judging.budget.record_spend(paid)
        yield judging


@contextmanager
def judges_from_file(plans: Iterable[Plan], settings: Settings) -> Iterator[Mapping[str, Judge | None]]:
    """By a plan's digest, whom its criteria may ask for as long as the `with` block lasts; None where none of them asks.

    Args:
        plans: What is measured.
        settings: Where judges are asked, and in which file their verdicts are.

    Raises:
        JudgeUnavailable: what asks is not installed, or the file cannot be used.
    """
    judges: dict[str, Judge | None] = {}
    with ExitStack() as stack:
        for plan in plans:
            if plan.digest not in judges:
                judging = stack.enter_context(judging_from_file(plan, settings))
                judges[plan.digest] = judging.session() if judging else None
        yield judges
