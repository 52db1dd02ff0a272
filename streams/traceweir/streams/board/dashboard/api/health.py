"""Answers monitors: whether everything works that scores need to arrive."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Response
from pydantic import BaseModel

from traceweir.streams.board.dashboard.context import Serving

router = APIRouter()


class HealthAnswer(BaseModel):
    """Whether everything works that scores need to arrive."""

    healthy: bool
    """Whether there is no problem."""
    problems: list[str]
    """The parts of the health that are red, each with what was found."""


@router.get(
    "/healthz", response_model=HealthAnswer, responses={503: {"model": HealthAnswer, "description": "Not healthy"}}
)
async def read_health(dashboard: Serving) -> Any:
    """Whether scores arrive; 503 if a part of the health is red."""
    problems = [f"{part.check}: {part.text}" for part in dashboard.options.health() if part.state == "failure"]
    document = {"healthy": not problems, "problems": problems}
    return Response(orjson.dumps(document), 503 if problems else 200, media_type="application/json")
