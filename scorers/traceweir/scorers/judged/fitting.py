"""Fits the dialogue of a prompt into the judge's window, before anything is paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from traceweir.schemas.base import JsonObject
from traceweir.scorers.judge import Judge, Question
from traceweir.scorers.judged.dialogue import Dialogue
from traceweir.scorers.judged.prompt import Prompt


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """Holds a prompt, and what was left out of its dialogue."""

    prompt: Prompt
    left_out: JsonObject = field(default_factory=dict)
    """What `Dialogue.left_out` returns; empty if all is there."""

    @property
    def details(self) -> JsonObject:
        """The part of a measurement's `details` that says what was left out; empty if nothing was."""
        return {"fitted": self.left_out} if self.left_out else {}


async def fitted_prompt(
    judge: Judge, dialogue: Dialogue, fill: Callable[[str], Prompt], question: Callable[[Prompt], Question]
) -> FittedPrompt:
    """Returns the prompt with as much of the dialogue as fits into the judge's window, by the rule of `Dialogue.shorter`.

    If even the shortest dialogue does not fit, it is returned: the judge refuses the question without asking a model.

    Args:
        judge: Whoever is asked.
        dialogue: The whole dialogue.
        fill: Returns the prompt with a text for the dialogue.
        question: Returns the question with a prompt.
    """
    while True:
        prompt = fill(str(dialogue))
        room = await judge.room(question(prompt))
        if room is None or room.is_enough:
            break
        characters = -(-len(prompt.text) * (room.tokens - room.limit) // room.tokens)
        if (shorter := dialogue.shorter(characters)) is None:
            break
        dialogue = shorter
    return FittedPrompt(prompt, dialogue.left_out())
