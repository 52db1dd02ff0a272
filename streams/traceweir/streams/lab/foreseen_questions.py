"""Finds what judges will be asked about a session, and what this costs, without asking them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from traceweir.schemas.model_names import litellm_name
from traceweir.schemas.session import Session
from traceweir.schemas.turns import turns_of
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.scorers.judge import Judge, JudgeFailed, Question, Reply
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.streams.base.clock import utc_now
from traceweir.streams.scoring.judges.litellm_setup import load_litellm
from traceweir.streams.scoring.judges.models import ANSWER_TOKENS, estimated_tokens, price_of
from traceweir.streams.scoring.judges.verdicts import verdict_key

_IN_SEQUENCE = {"hallucinations_v1": 2}
"""Criteria that ask a further question after the answer to the first, with the number of both."""


@dataclass(slots=True)
class _Questions(Judge):
    """A judge that answers nothing and notes the questions."""

    asked: list[Question] = field(default_factory=list)

    async def ask(self, question: Question) -> Reply:
        self.asked.append(question)
        raise JudgeFailed("nothing is asked for an estimate")


def foreseen(plan: Plan) -> Plan:
    """Returns the plan in which each criterion is measured whose conditions the answers of a judge decide."""
    undecided = set(plan.judged)
    metrics = {metric.name: metric for each in plan.rounds for metric in each}
    for name, metric in metrics.items():
        if metric.when is not None and any(each.metric in undecided for each in metric.when.any):
            undecided.add(name)
            metrics[name] = replace(metric, when=None)
    return replace(plan, metrics=tuple(metrics[metric.name] for metric in plan.metrics))


async def first_questions(plan: Plan, session: Session) -> list[Question]:
    """Returns the questions about a session as they are asked first, without the further replies of votes.

    The scorers get no answers, so a question that follows from an answer is not among them; see `replies_of`.
    """
    judge = _Questions()
    await evaluate(plan, session, turns_of(session), now=utc_now, timeout_s=10, judge=judge)
    return [question for question in judge.asked if not question.sample]


def verdict_keys(question: Question, plan: Plan, prices: JudgePrices) -> Iterator[bytes]:
    """Yields the keys of a verdict of the question's model, and of each model that can be asked in its place."""
    for model in (question.model, *plan.judge.fallback.get(question.model, ())):
        sampling = plan.judge.sampling_of(model)
        yield verdict_key(replace(question, model=model), prices.name_of(model), sampling)


def replies_of(plan: Plan) -> Callable[[Question], int]:
    """Returns a function that returns how many replies a first question leads to at most: its votes, and what follows.

    A vote ends as soon as it is decided; here it counts whole.
    """
    votes: dict[tuple[str, str], int] = {}
    for metric in plan.metrics:
        scorer = metric.scorer
        if not isinstance(scorer, JudgedScorer) or scorer.metric in _IN_SEQUENCE:
            continue
        question = (scorer.asks_as or scorer.metric, scorer.judge_model)
        votes[question] = max(votes.get(question, 0), scorer.judge_model_options.num_samples)
    return lambda asked: votes.get((asked.metric, asked.model), 1) * _IN_SEQUENCE.get(asked.metric, 1)


class JudgePrices:
    """The prices of the models of a plan, from the config, else from litellm's table.

    Args:
        plan: The plan.
        api_base: The address of an endpoint that all models have (`TRACEWEIR_JUDGE_API_BASE`); None: the providers' own.
    """

    def __init__(self, plan: Plan, api_base: str | None) -> None:
        self._config = plan.judge
        self._api_base = api_base
        self._known: dict[str, tuple[float, float] | None] = {}
        self._cached: dict[str, float | None] = {}
        self.unknown: set[str] = set()
        """The models without a price that were looked for."""

    def name_of(self, model: str) -> str:
        """Returns litellm's name of a model."""
        return litellm_name(model, self._config.models, self._api_base)

    def of(self, model: str) -> tuple[float, float] | None:
        """Returns USD per input token and per output token; a model without a price is noted as unknown."""
        name = self.name_of(model)
        if name not in self._known:
            try:
                about: Mapping[str, object] = load_litellm().get_model_info(name)
            except Exception:  # noqa: BLE001  # litellm does not know the model, or is not installed
                about = {}
            self._known[name] = price_of(self._config, name, about)
            cached = about.get("cache_read_input_token_cost")
            # A price of the config is that of the whole input.
            is_known = isinstance(cached, int | float) and name not in self._config.prices
            self._cached[name] = float(cached) if is_known and isinstance(cached, int | float) else None
        price = self._known[name]
        if price is None:
            self.unknown.add(name)
        return price

    def of_cached_input(self, model: str) -> float | None:
        """Returns USD per input token that the provider has in its cache; None if that is unknown."""
        self.of(model)
        return self._cached[self.name_of(model)]

    def usd(self, question: Question) -> float:
        """Returns the price of one reply to a question; 0 if it is unknown."""
        price = self.of(question.model)
        if price is None:
            return 0.0
        return estimated_tokens(question.prompt) * price[0] + ANSWER_TOKENS * price[1]
