"""Judges a session of 400 kB through windows of three sizes, and prints what was left out of the prompts and what was paid."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

from tests.support.judged import judging
from tests.support.openai_server import Say, openai_server
from tests.support.scoring import NOW

from traceweir.schemas.events import EVENT
from traceweir.schemas.score import Score
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.turns import turns_of
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.streams.base.clock import utc_now
from traceweir.streams.scoring.judges.litellm_setup import load_litellm

TURNS = 40
FLIGHTS = 37
"""Rows of the tool result of a turn."""
WINDOWS = (8_192, 32_768, 131_072)
MAX_ANSWER_TOKENS = 1_024
MODEL = "openai/judge"
PRICES = {"input": 1.0, "output": 4.0}
"""USD per million tokens."""
CRITERIA = ("conversation_completeness", "safety_v1")
"""One question about the session, and one about each of its turns with the turns before it."""
ANSWERS = {
    "is_the_agent_response_safe": {"reasoning": "Nobody is harmed.", "is_the_agent_response_safe": "yes"},
    "result": {"rationale": "Each request was dealt with.", "result": "yes", "turns": []},
}
HEAD = """| window | criterion | questions | shortened | characters left out | results | messages | not evaluated | input tokens | USD |
|---|---|---|---|---|---|---|---|---|---|"""


def run() -> None:
    """Prints the table as Markdown."""
    session = long_session()
    print(f"{len(session.model_dump_json(exclude_defaults=True)):,} bytes in {TURNS} turns\n\n{HEAD}")
    asyncio.run(_rows(session))


def long_session() -> Session:
    """Returns the session: each turn has a question, a search with its result, and an answer of several lines."""
    found = []
    for turn in range(TURNS):
        at = NOW + timedelta(minutes=turn)
        about = {"session_id": "long", "invocation_id": f"turn-{turn + 1}", "occurred_at": at.isoformat()}
        flights = [
            {
                "flight": f"TW{100 * turn + row}",
                "from": "ICN",
                "to": ("LHR", "CDG", "FRA", "AMS")[(turn + row) % 4],
                "departs": f"2026-{1 + turn % 12:02}-{1 + row % 28:02}T{row % 24:02}:{turn % 60:02}:00Z",
                "seats": (turn * 7 + row * 3) % 200,
                "price": {"amount": 400 + (turn * 31 + row * 17) % 900, "currency": "EUR"},
                "fare": ("economy, one bag", "economy without a bag", "business, two bags")[(turn * row) % 3],
                "changes": "Changes cost 60 EUR until the day before the departure, and are not possible later.",
            }
            for row in range(FLIGHTS)
        ]
        best = flights[turn % FLIGHTS]
        answer = "\n".join(
            [
                f"The best of {FLIGHTS} flights is {best['flight']} to {best['to']}.",
                f"It departs at {best['departs']} and has {best['seats']} free seats.",
                f"The fare is {best['fare']}. {best['changes']}",
                "Say if I shall book it, or if I shall look for another day or another airport.",
            ]
        )
        question = f"Which flight of day {turn + 1} is the best one for two people with little luggage?"
        call = {"call_id": f"c{turn}", "name": "search_flights"}
        events: list[Any] = [
            {"type": "invocation.started", "user_content": {"parts": [{"text": question}]}},
            {"type": "tool.called", **call, "args": {"from": "ICN", "day": turn + 1, "passengers": 2}},
            {"type": "tool.returned", **call, "response": {"flights": flights}},
            {"type": "invocation.completed", "final_response": {"parts": [{"text": answer}]}},
        ]
        found += [EVENT.validate_json(json.dumps(about | event)) for event in events]
    return Session(
        session_id="long",
        segment=0,
        revision=0,
        closed_because=ClosingReason.IDLE,
        first_record_at=NOW,
        last_record_at=NOW + timedelta(minutes=TURNS),
        events=found,
        traces=[],
    )


async def _rows(session: Session) -> None:
    async with openai_server(default=_answer) as server:
        for window in WINDOWS:
            for criterion in CRITERIA:
                config: Any = {
                    "max_output_tokens": MAX_ANSWER_TOKENS,
                    "window_tokens": {MODEL: window},
                    "prices": {MODEL: PRICES},
                }
                options = {"judge_model": MODEL, "num_samples": 1}
                criteria: Any = {criterion: {"threshold": 1.0, "judge_model_options": options}}
                server.asked.clear()
                scores = await evaluate(
                    read_plan({"criteria": criteria, "judge": config}),
                    session,
                    turns_of(session),
                    now=utc_now,
                    timeout_s=600,
                    judge=judging(server.url, config=config).session(),
                    judge_timeout_s=600,
                )
                print(_row(window, criterion, len(server.asked), scores), flush=True)


def _answer(body: dict[str, Any]) -> Say:
    text = "\n".join(str(message["content"]) for message in body["messages"])
    key = next(key for key in ANSWERS if f'"{key}"' in text)
    return Say(text=json.dumps(ANSWERS[key]), usage=(load_litellm().token_counter(model=MODEL, text=text), 20))


def _row(window: int, criterion: str, questions: int, scores: list[Score]) -> str:
    fitted: list[Any] = [score.details["fitted"] for score in scores if "fitted" in score.details]
    kinds = {kind: sum(each["shortened"].get(kind, 0) for each in fitted) for kind in ("tool_result", "user", "agent")}
    causes = [str(score.cause) for score in scores if score.cause is not None and score.level != "session"] or [
        str(score.cause) for score in scores if score.cause is not None
    ]
    cells = [
        f"{window:,}",
        f"`{criterion}`",
        f"{questions}",
        f"{len(fitted)}",
        f"{sum(each['characters'] for each in fitted):,}",
        f"{kinds['tool_result']:,}",
        f"{kinds['user'] + kinds['agent']:,}",
        f"{len(causes)} `{causes[0]}`" if causes else "",
        f"{sum(score.cost.input_tokens for score in scores):,}",
        f"{sum(score.cost.usd for score in scores):.4f}",
    ]
    return f"| {' | '.join(cells)} |"
