"""A server on which the two judges of `docs/compare.md` answer from a script."""

from __future__ import annotations

import json
from typing import Any

from tests.support.openai_server import Say
from tests.support.paths import ROOT

FOLDER = ROOT / "examples" / "judge-change"


def scripted_verdict(body: dict[str, Any]) -> Say:
    """Returns the verdict of the model that is asked about the question in its prompt.

    Raises:
        LookupError: the script has no such model or question.
    """
    verdicts = json.loads((FOLDER / "verdicts.json").read_text("utf-8"))[body["model"]]
    prompt = body["messages"][-1]["content"]
    (verdict,) = (verdict for question, verdict in verdicts.items() if question in prompt)
    return Say(text=json.dumps(verdict), usage=(900, 60))
