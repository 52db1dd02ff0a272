"""A model server of one's own, behind the module litellm: it answers few questions at once, each in a fixed time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from traceweir.streams.scoring.judges.litellm_setup import load_litellm


class ModelError(Exception):
    """A provider's error, as litellm raises it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


class SlowModel:
    """Stands for litellm's call of a model, in the time of the event loop.

    Args:
        answer_s: Seconds of one answer.
        at_once: Number of questions that it works on at the same time; the others wait in its queue.
        finishes: Whether it also answers questions whose client does not wait any more.
        busy_above: Number of questions above which it refuses one with status 429.
    """

    def __init__(
        self, answer_s: float, *, at_once: int = 1, finishes: bool = False, busy_above: int | None = None
    ) -> None:
        self._answer_s = answer_s
        self._workers = asyncio.Semaphore(at_once)
        self._finishes = finishes
        self._busy_above = busy_above
        self.asked = 0
        self.here = 0
        self.most_at_once = 0
        self.error: Callable[[], Exception | None] = lambda: None
        """The error with which the next question is refused; None: it is answered."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Makes judges ask this model in place of a provider."""
        monkeypatch.setattr(load_litellm(), "acompletion", self.acompletion)

    async def acompletion(self, **options: Any) -> Any:
        """Answers yes."""
        self.asked += 1
        if (error := self.error()) is not None:
            raise error
        if self._busy_above is not None and self.here >= self._busy_above:
            raise ModelError(429)
        self.here += 1
        self.most_at_once = max(self.most_at_once, self.here)
        work = asyncio.create_task(self._work())
        return await (asyncio.shield(work) if self._finishes else work)

    async def _work(self) -> Any:
        try:
            async with self._workers:
                await asyncio.sleep(self._answer_s)
        finally:
            self.here -= 1
        usage = SimpleNamespace(prompt_tokens=10, completion_tokens=2)
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="yes"))], usage=usage)
