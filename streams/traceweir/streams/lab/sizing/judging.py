"""What the judges of a config are asked in a day, and what that costs with and without the caches of providers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.lab.foreseen_questions import JudgePrices, first_questions, replies_of, verdict_keys
from traceweir.streams.lab.sizing.figures import CACHED_PROMPT_TOKENS
from traceweir.streams.lab.sizing.load import SessionLoad, typical_session
from traceweir.streams.scoring.judges.models import ANSWER_TOKENS, estimated_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCriterion:
    """What a criterion asks in a day."""

    criterion: str
    model: str
    share: float
    """The share of sessions in which it asks: sampling, and the cascade."""
    questions: float
    """Replies of the judge in a day; each vote counts whole."""
    input_tokens: float
    cacheable_tokens: float
    """How many of the input tokens can come from the provider's cache: a beginning that all prompts of an agent share, if it
    is long enough for the caches of providers."""
    output_tokens: float
    usd: float | None
    """Price without a cache; None: unknown."""
    cached_usd: float | None
    """Price if all cacheable tokens come from the cache, so `usd` if there are none; None: unknown."""


async def judged_criteria(plan: Plan, load: SessionLoad, api_base: str | None = None) -> list[JudgedCriterion]:
    """Returns what each criterion of a plan that asks a judge asks about the typical session, in a day.

    A question that two criteria share counts for the first.

    Args:
        plan: The plan.
        load: The load.
        api_base: The address of an endpoint that all models have; None: the providers' own.
    """
    prices = JudgePrices(plan, api_base)
    replies = replies_of(plan)
    session = typical_session(load)
    asked: set[bytes] = set()
    found: list[JudgedCriterion] = []
    for metric in plan.metrics:
        if metric.scorer is None or not metric.scorer.judged:
            continue
        alone = replace(plan, metrics=(replace(metric, when=None),), sampling={metric.name: 1.0})
        share = load.share_of(plan, metric)
        a_day = load.sessions_per_day * share
        questions = inputs = cacheable = 0.0
        for question in await first_questions(alone, session):
            key = next(verdict_keys(question, plan, prices))
            if key in asked:
                continue
            asked.add(key)
            count = a_day * replies(question)
            stable = estimated_tokens(question.prompt[: question.stable_characters])
            questions += count
            inputs += count * estimated_tokens(question.prompt)
            cacheable += count * stable if question.stable_characters and stable >= CACHED_PROMPT_TOKENS else 0.0
        model = metric.scorer.judge_model or ""
        outputs = questions * ANSWER_TOKENS
        usd, cached_usd = _prices(prices, model, inputs, cacheable, outputs)
        found.append(
            JudgedCriterion(
                criterion=metric.name,
                model=model,
                share=share,
                questions=questions,
                input_tokens=inputs,
                cacheable_tokens=cacheable,
                output_tokens=outputs,
                usd=usd,
                cached_usd=cached_usd,
            )
        )
    return found


def _prices(
    prices: JudgePrices, model: str, inputs: float, cacheable: float, outputs: float
) -> tuple[float | None, float | None]:
    price = prices.of(model)
    if price is None:
        return None, None
    usd = inputs * price[0] + outputs * price[1]
    if not cacheable:
        return usd, usd
    cached = prices.of_cached_input(model)
    return usd, None if cached is None else usd - cacheable * (price[0] - cached)
