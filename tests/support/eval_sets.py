"""Builds eval sets as JSON, with defaults for all fields that a test does not set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def content(text: str, role: str = "user") -> Document:
    return {"parts": [{"text": text}], "role": role}


def invocation(question: str, answer: str | None = None, tools: Sequence[Document] | None = None) -> Document:
    turn: Document = {"user_content": content(question)}
    if answer is not None:
        turn["final_response"] = content(answer, "model")
    if tools is not None:
        turn["intermediate_data"] = {"tool_uses": list(tools)}
    return turn


def case(eval_id: str, *turns: Document, **more: Any) -> Document:
    return {"eval_id": eval_id, "conversation": list(turns), **more}


def scenario(eval_id: str, starting_prompt: str = "Hi") -> Document:
    return {
        "eval_id": eval_id,
        "conversation_scenario": {"starting_prompt": starting_prompt, "conversation_plan": "Go on."},
    }


def eval_set(*cases: Document, eval_set_id: str = "set1", **more: Any) -> Document:
    return {"eval_set_id": eval_set_id, "eval_cases": list(cases), **more}


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document, ensure_ascii=False), "utf-8")
    return path
