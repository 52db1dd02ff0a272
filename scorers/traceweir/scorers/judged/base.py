"""Defines the base class of all scorers that ask a judge, and its options."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from traceweir.schemas.base import ConfigModel, JsonObject, NonEmpty
from traceweir.schemas.reference import session_reference
from traceweir.schemas.sampling import JudgeModelConfig
from traceweir.schemas.session import Session
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import AdkCompat, MissingInput, Scorer, Subject
from traceweir.scorers.judge import Judge, Question
from traceweir.scorers.judged.dialogue import Dialogue, dialogue_of
from traceweir.scorers.judged.fitting import FittedPrompt, fitted_prompt
from traceweir.scorers.judged.prompt import Prompt, prompt

OPTIONS_NOT_IN_DIGEST = ("judge_model", "judge_model_config", "parallelism_limit")
"""Judge options that are not among the options of the metric digest as they are.

The digest has a separate field for the model, and the sampling parameters of `judge_model_config` if one is set. The
limit changes no value.
"""


class JudgeModelOptions(ConfigModel):
    """Holds the model that a criterion asks, and how often it asks: Google ADK's `judge_model_options`."""

    judge_model: NonEmpty = "gemini-2.5-flash"
    num_samples: Annotated[int, Field(ge=1)] = 5
    """Maximum number of replies to one question. Asking ends as soon as further replies cannot change the verdict."""
    parallelism_limit: Annotated[int, Field(ge=1)] = 1
    """Maximum number of questions about one invocation that are in flight at the same time."""
    judge_model_config: JudgeModelConfig | None = None
    """Sampling parameters, in the names of Google's `GenerateContentConfig`."""

    @property
    def sampling(self) -> JsonObject:
        """The sampling parameters in litellm's names; empty if none is set."""
        return self.judge_model_config.sampling().sent() if self.judge_model_config else {}


class RatingOptions(JudgeModelOptions):
    """Holds a rating's judge options; defaults: a single reply, as in Agent Evaluation, and ten questions in flight."""

    num_samples: Annotated[int, Field(ge=1)] = 1
    parallelism_limit: Annotated[int, Field(ge=1)] = 10


class JudgedScorer(Scorer):
    """Base class of the scorers that ask a judge."""

    metric: ClassVar[str]
    """The criterion's name."""
    asks_as: ClassVar[str] = ""
    """The criterion whose questions this one asks, so that both share verdicts and pay once; empty: its own."""
    judged = True
    version = "4"
    judge_model_options: JudgeModelOptions = JudgeModelOptions()

    @property
    def judge_model(self) -> str:
        """The name of the judge model, as in the config."""
        return self.judge_model_options.judge_model

    def decisive_options(self) -> JsonObject:
        """Returns the options that can change a value: all except those in `OPTIONS_NOT_IN_DIGEST`, and sampling."""
        options: JsonObject = self.model_dump(mode="json", exclude={"judge_model_options": set(OPTIONS_NOT_IN_DIGEST)})
        return options | ({"sampling": self.judge_model_options.sampling} if self.judge_model_options.sampling else {})

    @property
    def asks_once(self) -> bool:
        """Whether one answer to a question decides, without a vote."""
        return self.judge_model_options.num_samples == 1

    dialogue_block: ClassVar[str] = "history"
    """The block of the prompt that holds what `dialogue` returns."""

    def dialogue(self, subject: Subject) -> Dialogue | None:
        """Returns the dialogue that the judge reads; None: no dialogue."""
        return None

    async def prompt(
        self, subject: Subject, template: str, data: Mapping[str, str], texts: Mapping[str, str] | None = None
    ) -> FittedPrompt:
        """Returns the template of this name with each text in its block, and the dialogue fitted into the judge's window.

        Args:
            subject: What is judged, with the judge to ask.
            template: The name of the template.
            data: The texts of users and agents, by block.
            texts: Texts of the config, by placeholder; they are no data, and can name blocks in braces.

        Raises:
            MissingInput: there is no judge.
        """
        dialogue = self.dialogue(subject)
        if dialogue is None:
            return FittedPrompt(prompt(template, data, texts))
        # Each turn of a long session has a long prompt, and others wait for the event loop.
        await asyncio.sleep(0)
        return await fitted_prompt(
            judge_of(subject),
            dialogue,
            lambda text: prompt(template, {**data, self.dialogue_block: text}, texts),
            lambda filled: self.question(filled, {}, lambda reply: None),
        )

    def question(
        self, prompt: Prompt, answer: Mapping[str, JsonValue], problem: Callable[[str], str | None], sample: int = 0
    ) -> Question:
        """Returns a question of this criterion to its model; `problem` as in `Question`."""
        return Question(
            metric=self.asks_as or self.metric,
            version=self.version,
            model=self.judge_model,
            prompt=prompt.text,
            stable_characters=prompt.stable_characters,
            tag=prompt.tag,
            answer=answer,
            sampling=self.judge_model_options.sampling,
            is_single=self.asks_once,
            sample=sample,
            problem=problem,
        )


class JudgedTurn(JudgedScorer):
    """Base class of the scorers that judge an invocation, with the turns before it."""

    history: Annotated[int, Field(ge=0)] | Literal["all"] | None = None
    """How many earlier turns of the session the judge reads: a number, or `all`. Null: all, and with `compat: "adk"` none,
    as in Google ADK. What does not fit into the model's window is shortened, the oldest first."""

    def dialogue(self, subject: Subject) -> Dialogue | None:
        """Returns the earlier turns; None if there are none, or none are to be read."""
        earlier = subject.earlier_turns
        compat: AdkCompat = getattr(self, "compat", None)
        wanted = self.history if self.history is not None else "all" if compat is None else 0
        left_out = 0 if wanted == "all" else max(0, len(earlier) - wanted)
        shown = earlier[left_out:]
        if not shown:
            return None
        return dialogue_of(shown, subject.session, first=left_out + 1, found=subject.found_of_session)


def judge_of(subject: Subject) -> Judge:
    """Returns the subject's judge.

    Raises:
        MissingInput: the subject has no judge.
    """
    if subject.judge is None:
        raise MissingInput("there is no judge to ask")
    return subject.judge


def subject_at_end(
    scorer: JudgedScorer, turns: Sequence[Turn], judge: Judge, session: Session | None = None
) -> Subject:
    """Returns what a scorer measures at the end of some turns: the last invocation, or all of them as a session.

    Args:
        scorer: The scorer; one of level `trace` has no subject there.
        turns: The turns of a session in order, at least one.
        judge: The judge that the scorer can ask.
        session: The session, if it is known.
    """
    if scorer.level == "session":
        expected = session_reference(turn.reference for turn in turns)
        return Subject(session=session, reference=expected, turns=turns, judge=judge)
    last = turns[-1]
    return Subject(
        session=session,
        invocation=last.invocation,
        reference=last.reference,
        turns=turns,
        position=len(turns) - 1,
        judge=judge,
    )
