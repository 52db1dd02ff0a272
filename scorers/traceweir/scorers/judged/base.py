"""What scorers that ask a judge have in common: their options, and how a question comes about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue

from traceweir.schemas.base import ConfigModel, JsonObject, NonEmpty
from traceweir.scorers.base import MissingInput, Scorer, Subject
from traceweir.scorers.judge import Judge, Question

NO_INFLUENCE = ("judge_model", "judge_model_config", "parallelism_limit")
"""Judge options that stand in no metric digest: the model has a place of its own in it, the others change no value."""


class JudgeModelOptions(ConfigModel):
    """Whom a criterion asks, and how often: Google ADK's `judge_model_options`."""

    judge_model: NonEmpty = "gemini-2.5-flash"
    num_samples: Annotated[int, Field(ge=1)] = 5
    """Replies to one question at most. No more are asked for once the others cannot change the outcome."""
    parallelism_limit: Annotated[int, Field(ge=1)] = 1
    """Questions about one invocation that may be in flight at once."""
    judge_model_config: JsonObject | None = None
    """Accepted, because ADK's files may have it, and without effect: how a model generates is up to whoever hands the judge in."""


class JudgedScorer(Scorer):
    """A scorer that asks a judge."""

    metric: ClassVar[str]
    """The criterion's name, under which its questions are counted and remembered."""
    judged = True
    judge_model_options: JudgeModelOptions = JudgeModelOptions()

    @property
    def judge_model(self) -> str:
        """The model that is asked, as the config names it."""
        return self.judge_model_options.judge_model

    def decisive_options(self) -> JsonObject:
        """The options but for the judge's that change no value."""
        options: JsonObject = self.model_dump(mode="json", exclude={"judge_model_options": set(NO_INFLUENCE)})
        return options

    def question(self, prompt: str, answer: Mapping[str, JsonValue], sample: int = 0) -> Question:
        """A question of this criterion to its model."""
        return Question(
            metric=self.metric,
            version=self.version,
            model=self.judge_model,
            prompt=prompt,
            answer=answer,
            sample=sample,
        )


def judge_of(subject: Subject) -> Judge:
    """The subject's judge.

    Raises:
        Missing: there is none.
    """
    if subject.judge is None:
        raise MissingInput("there is no judge to be asked")
    return subject.judge
