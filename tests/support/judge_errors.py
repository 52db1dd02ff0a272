"""Reads the error message of a judge, and sets the prices of the test model."""

from __future__ import annotations

from typing import Any

import pytest

from traceweir.scorers.judge import JudgeFailed

PRICES = {"prices": {"openai/stub": {"input": 1e4, "output": 1e5}}}
"""0.01 USD per input token and 0.10 USD per output token."""


async def error_message(asked: Any, kind: type[Exception] = JudgeFailed) -> str:
    """Returns the message of the error that the awaitable raises, and asserts that the error has no cause."""
    with pytest.raises(kind) as caught:
        await asked
    assert caught.value.__cause__ is None
    return str(caught.value)
