"""Fixtures of the flow tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.judge_retries import Provider
from tests.support.openai_server import openai_server


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with openai_server() as server:
        yield Provider(server)
