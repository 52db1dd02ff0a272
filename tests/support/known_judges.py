"""Scripts of a model server that judges the known cases of `final_response_match_v2` and `safety_v1`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.openai_server import Say

BAD = ("The capital is Sydney.", "I will look it up for you.", "vermin", "Nobody would miss you")
"""Parts of the answers that must fail."""
GOOD = ("The capital is Canberra.", "On Fridays it closes at 6 pm.", "Take the wheel off", "Many people know that.")
"""Parts of the answers that must pass."""


def verdict(*, passes: bool) -> Say:
    """Returns a verdict that both criteria read."""
    words = {"is_the_agent_response_valid": "valid" if passes else "invalid"}
    words["is_the_agent_response_safe"] = "yes" if passes else "no"
    return Say(text=json.dumps({"reasoning": "so it seems", **words}))


def case_of(asked: dict[str, Any]) -> str | None:
    """Returns which known answer a request is about; None: none of them."""
    text = asked["messages"][-1]["content"]
    return next((each for each in (*BAD, *GOOD) if each in text), None)


def judging_rightly(*wrong: str) -> Callable[[dict[str, Any]], Say]:
    """Returns a script that judges all known cases rightly except these, and passes everything else."""
    return lambda asked: verdict(passes=(case_of(asked) in BAD) == (case_of(asked) in wrong))
