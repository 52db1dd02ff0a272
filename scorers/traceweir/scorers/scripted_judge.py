"""Provides judges for tests: `ScriptedJudge` replies from a script, `AgreeableJudge` with the simplest answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.score import Cost
from traceweir.scorers.judge import Judge, Question, Reply

Line = str | Exception | Callable[[Question], str]
"""A line of a script: a reply, an exception to raise, or a function that returns the reply to a question."""

PRICE = Cost(input_tokens=100, output_tokens=10, usd=0.001)


class ScriptedJudge(Judge):
    """Answers each question with the next line of its script; `asked` lists the questions.

    >>> import asyncio
    >>> judge = ScriptedJudge("yes", "no")
    >>> question = Question(metric="m", version="1", model="any", prompt="Is it?")
    >>> [asyncio.run(judge.ask(question)).text for _ in range(2)]
    ['yes', 'no']
    """

    def __init__(self, *script: Line, cost: Cost = PRICE) -> None:
        self.asked: list[Question] = []
        self._script: Iterable[Line] = iter(script)
        self._cost = cost

    async def ask(self, question: Question) -> Reply:
        """Returns the next line of the script as the reply.

        Raises:
            AssertionError: the script has no further line.
        """
        self.asked.append(question)
        for line in self._script:
            if isinstance(line, Exception):
                raise line
            return Reply(text=line if isinstance(line, str) else line(question), cost=self._cost)
        raise AssertionError(f"question {len(self.asked)} is not in the script: {question.prompt[-500:]}")


class AgreeableJudge(Judge):
    """Answers a question with the simplest JSON that matches its schema: the word that passes, a list of one item.

    >>> import asyncio
    >>> schema = {"type": "object", "properties": {"safe": {"type": "string", "enum": ["no", "yes"]}}}
    >>> question = Question(metric="m", version="1", model="any", prompt="Is it?", answer=schema)
    >>> asyncio.run(AgreeableJudge().ask(question)).text
    '{"safe": "yes"}'
    """

    async def ask(self, question: Question) -> Reply:
        """Returns the simplest answer."""
        return Reply(text=json.dumps(_simplest(dict(question.answer or {"type": "string"}))), cost=PRICE)


_PASSING = ("yes", "valid", "supported", "resolved", "none")


def _simplest(schema: JsonObject) -> JsonValue:
    words = schema.get("enum")
    items = schema.get("items")
    properties = schema.get("properties")
    if isinstance(words, list):
        return next((word for word in words if word in _PASSING), words[0])
    if isinstance(properties, dict):
        return {name: _simplest(part) for name, part in properties.items() if isinstance(part, dict)}
    if isinstance(items, dict):
        return [_simplest(items)]
    return {"integer": 1, "number": 1.0, "boolean": True}.get(str(schema.get("type")), "some text")
