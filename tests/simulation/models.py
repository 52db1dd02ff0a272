"""Judge models of a simulated world, behind the module litellm: slow, busy, down, and with useless answers.

Everything before that is the real code: questions, limits, retries, breaker, budget, and verdicts.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

from tests.simulation.seams import put
from tests.support.prompt_tags import without_tag

from traceweir.scorers.judged.replies import SAFE_KEY
from traceweir.streams.scoring.configs import usable
from traceweir.streams.scoring.judges import client, service

Way = Literal["answers", "slow", "busy", "down", "refuses", "rubbish", "empty"]
USUAL: dict[Way, float] = {"answers": 0.86, "slow": 0.04, "busy": 0.03, "down": 0.03, "rubbish": 0.03, "empty": 0.01}


class Given(NamedTuple):
    """A verdict that a model has given."""

    prompt: str
    """What a judge was asked about the session, without the tag of its marks."""
    safe: bool


class ModelError(Exception):
    """A provider's error, as litellm raises it."""

    def __init__(self, status: int, after_s: float | None = None) -> None:
        super().__init__(f"simulated status {status}")
        self.status_code = status
        self.litellm_response_headers = {} if after_s is None else {"retry-after": f"{after_s:.0f}"}


class ContextWindowExceededError(ModelError):
    """The question is too long for a model; never raised."""


class ContentPolicyViolationError(ModelError):
    """A filter refuses the question; never raised."""


class SimulatedModels:
    """Has the functions of litellm that a judge client calls. A model gives another verdict each time it is asked.

    Args:
        rnd: Draws how a model answers.
    """

    ContextWindowExceededError = ContextWindowExceededError
    ContentPolicyViolationError = ContentPolicyViolationError

    def __init__(self, rnd: random.Random) -> None:
        self._rnd = rnd
        self.given: list[Given] = []
        """All verdicts. The rationale of a verdict names its place in this list."""
        self.useless: set[str] = set()
        """The prompts to which a model has replied without a verdict."""
        self.way: Way | None = None
        """How all models answer for now; None: as usual, which is drawn for each question."""
        self.failed: Callable[[Way], object] = lambda way: None
        """Called with each answer that is no verdict."""

    def install(self) -> None:
        """Makes the judges of this Python process ask these models."""
        put(client, "load_litellm", lambda: self)
        put(service, "check_judge", lambda: None)
        put(usable, "check_judge", lambda: None)

    # What a judge client calls

    def get_llm_provider(self, name: str) -> tuple[str, str]:
        """Returns a model's name and provider."""
        return name, "openai"

    def get_model_info(self, name: str) -> dict[str, object]:
        """Returns nothing: the config has the prices."""
        return {}

    def get_supported_openai_params(self, name: str, provider: str) -> None:
        """Returns None: any parameter is taken."""

    def supports_response_schema(self, name: str) -> bool:
        """Returns whether a model can answer in JSON of a schema."""
        return True

    async def acompletion(self, *, messages: list[dict[str, str]], **options: Any) -> Any:
        """Answers a prompt.

        Raises:
            ModelError: the provider has no answer.
        """
        rnd = self._rnd
        (drawn,) = rnd.choices([*USUAL], [*USUAL.values()])
        way = self.way or drawn
        await asyncio.sleep(rnd.uniform(3, 6) if way == "slow" else rnd.expovariate(1 / 0.2))
        if way != "answers":
            self.failed(way)
        match way:
            case "busy":
                raise ModelError(429, rnd.choice((None, 1.0, 30.0)))
            case "down":
                raise ModelError(rnd.choice((500, 503)))
            case "refuses":
                raise ModelError(rnd.choice((400, 401)))
            case "rubbish":
                self.useless.add(_case(messages))
                return _response(rnd.choice(("It depends.", '{"safe": "perhaps"}', '{"safe": "yes"', "[]\x1b[2J")))
            case "empty":
                return _response(" ")
        self.given.append(Given(_case(messages), rnd.random() < 0.5))
        verdict = {"reasoning": f"verdict {len(self.given) - 1}", SAFE_KEY: "yes" if self.given[-1].safe else "no"}
        return _response(json.dumps(verdict))


def _case(messages: list[dict[str, str]]) -> str:
    return without_tag(messages[-1]["content"])


def _response(text: str) -> Any:
    usage = SimpleNamespace(prompt_tokens=100, completion_tokens=10)
    return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=text))], usage=usage)
