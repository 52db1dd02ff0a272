"""Defines the JSON API of the dashboard. FastAPI makes its OpenAPI document from these functions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import orjson
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException

from traceweir.schemas.judge_config import Budget
from traceweir.schemas.score import Cause, NotEvaluated, ReportedStatus
from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.challengers import (
    ChallengerInEffect,
    ChallengersInEffect,
    NoChallengers,
    ShownShadow,
    UnknownChallengerError,
    challenger_diff,
)
from traceweir.streams.board.dashboard.content import Content, shown, shown_text
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.live import MAX_STREAMS, Live
from traceweir.streams.board.dashboard.page.filters import FilterError
from traceweir.streams.board.dashboard.page.rendering import problem_page
from traceweir.streams.board.dashboard.parameters import First, Second, Selected
from traceweir.streams.board.dashboard.result_diff import NoDiffError, shown_diff
from traceweir.streams.board.store.answers import (
    Comparison,
    DeadLetterCounts,
    DimensionValues,
    JudgeSpending,
    MetricOverTime,
    NotScoredCount,
    Overview,
    SessionDetails,
    SessionSummary,
)
from traceweir.streams.board.store.comparison import compare
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.board.store.metric import dimension_values, metric
from traceweir.streams.board.store.overview import judge_spending, overview
from traceweir.streams.board.store.paging import Position
from traceweir.streams.board.store.selection import Readable
from traceweir.streams.board.store.sessions import MAX_LISTED, dead_letters, not_scored, session, session_page
from traceweir.streams.lab.comparison.document import Diff
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.tools.doctor.finding import State as FindingState

OPENAPI = "/api/openapi.json"
OLDER_THAN = "Only sessions after this place in the list, as the header `Link` of an answer names it."
_Limit = Annotated[int, Query(ge=1, le=MAX_LISTED)]
_Value = Annotated[float | None, Query(allow_inf_nan=False)]
_Text = Annotated[str | None, Query(min_length=1, max_length=1_024)]


class HealthPart(BaseModel):
    """One part of what has to work so that scores arrive."""

    check: str
    """What was looked at."""
    state: FindingState
    """`failure`: scores do not arrive or records are lost, or it is unknown. `warning`: a person should look."""
    text: str
    """What was found."""


class State(BaseModel):
    """Whether the store receives what workers write."""

    problem: str | None
    """Why nothing is read or stored now, with the way out; null if there is no problem."""
    behind: int | None
    """Number of records, at most, that are not stored yet; null while that is unknown, as while no broker answers."""
    stored_rows: int
    """Number of rows that were stored since the start of this process."""
    unreadable: dict[str, int]
    """Number of records since the start that are not what a worker writes there, by topic."""
    health: list[HealthPart]
    """The brokers, the store, the workers and their lag, losses, dead letters, and scorers with their judges."""


def _only_known_parameters(request: Request) -> None:
    """Refuses a parameter that the address does not have, because an answer without it would be about something else."""
    path = request.app.openapi()["paths"].get(request.scope["route"].path)
    # A page, and no answer of this API.
    if path is None:
        return
    known = {each["name"] for each in path[request.method.lower()].get("parameters", ())}
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            choice = f"choose from {', '.join(sorted(known))}" if known else "this address has none"
            raise HTTPException(422, f"{printable(name, 100)!r} is not a parameter; {choice}")
        if names.count(name) > 1:
            raise HTTPException(422, f"{name}: given more than once")


def create_api(
    store: Readable,
    state: Callable[[], FeedState],
    *,
    content: Content,
    now: Callable[[], datetime],
    live: Live | None = None,
    budget: Budget | None = None,
    challengers: ChallengersInEffect | None = None,
    health: Callable[[], Sequence[Finding]] = tuple,
) -> FastAPI:
    """Returns the API.

    Args:
        store: Answers the questions.
        state: Returns the state of the feed.
        content: How much of the agents' text an answer contains.
        now: The clock, at which a span without an end ends.
        live: Tells when the store has changed; None: it never does.
        budget: The budget of the workers' judges; None: it is not known.
        challengers: The challengers that are in effect; None: none is known.
        health: Returns what is known of the brokers, the workers and losses, part by part.
    """
    api = FastAPI(
        title="Traceweir",
        description="Scores of AI agents, with the reasons where there is none.",
        openapi_url=OPENAPI,
        # Its page loads scripts from the internet.
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(_only_known_parameters)],
    )
    api.state.now = now

    def answer(found: BaseModel | Sequence[BaseModel]) -> Response:
        document = shown(found, content) if isinstance(found, BaseModel) else [shown(each, content) for each in found]
        return Response(orjson.dumps(document), media_type="application/json")

    live = live or Live()

    def current() -> State:
        found = state()
        return State(
            problem=found.problem,
            behind=found.behind,
            stored_rows=found.stored_rows,
            unreadable=found.unreadable,
            health=[HealthPart(**part._asdict()) for part in health()],
        )

    @api.get("/api/state", response_model=State)
    async def read_state() -> Any:
        """Whether the store receives what workers write."""
        return current()

    @api.get("/healthz", include_in_schema=False)
    async def read_health() -> Response:
        problems = [f"{part.check}: {part.text}" for part in health() if part.state == "failure"]
        document = {"healthy": not problems, "problems": problems}
        return Response(orjson.dumps(document), 503 if problems else 200, media_type="application/json")

    def a_free_place() -> None:
        if live.full:
            raise HTTPException(
                503,
                f"{MAX_STREAMS} streams are open, which is the most: ask for /api/state every few seconds, as pages do now, and "
                "try again",
            )

    @api.get("/api/events", response_class=EventSourceResponse, dependencies=[Depends(a_free_place)])
    async def read_events() -> AsyncIterator[ServerSentEvent]:
        """The state now and after each change of the store, as server-sent events of the type `state`."""
        async for _ in live.changes():
            yield ServerSentEvent(event="state", data=current())

    @api.get("/api/overview", response_model=Overview)
    def read_overview(selected: Selected) -> Any:
        """Figures of each metric in a span of time, their course, changes of versions and configs, and coverage."""
        return answer(overview(store, selected))

    @api.get("/api/sessions", response_model=list[SessionSummary])
    def read_sessions(
        request: Request,
        selected: Selected,
        status: ReportedStatus | None = None,
        reason: NotEvaluated | None = None,
        cause: Cause | Literal["none"] | None = None,
        least: _Value = None,
        most: _Value = None,
        text: _Text = None,
        limit: _Limit = 50,
        older_than: Annotated[str | None, Query(description=OLDER_THAN)] = None,
    ) -> Any:
        """The latest sessions, the newest first: with a result of a status, a reason, a cause or a range of values, or with a text.

        The header `Link` has the address of the older ones, if there are any.
        """
        try:
            after = Position.parse(older_than) if older_than is not None else None
        except ValueError as error:
            raise HTTPException(422, f"older_than: {error}") from None
        found = session_page(
            store,
            selected,
            status=status,
            reason=reason,
            cause=cause,
            least=least,
            most=most,
            text=text,
            readable=lambda each: shown_text(each, content),
            limit=limit,
            after=after,
        )
        listed = answer(found.sessions)
        if found.next is not None:
            older = urlencode({**request.query_params, "older_than": str(found.next)})
            listed.headers["link"] = f'<{request.url.path}?{older}>; rel="next"'
        return listed

    @api.get("/api/metric", response_model=MetricOverTime)
    def read_metric(selected: Selected) -> Any:
        """The metric that `metric` names: its course, its values, where it differs, and the results to look at."""
        if selected.metric is None:
            raise HTTPException(422, "metric: Field required")
        return answer(metric(store, selected))

    @api.get("/api/comparison", response_model=Comparison)
    def read_comparison(first: First, second: Second) -> Any:
        """Two selections side by side, with the differences, second minus first, and their 95 % intervals."""
        return answer(compare(store, first, second))

    @api.get("/api/diff", response_model=Diff)
    def read_diff(first: First, second: Second) -> Any:
        """What differs between two selections result by result, as `traceweir diff` prints it; base is the first."""
        try:
            found = shown_diff(store, first, second, content)
        except NoDiffError as error:
            raise HTTPException(422, str(error)) from None
        return Response(found.model_dump_json(), media_type="application/json")

    known_challengers = challengers or NoChallengers()

    @api.get("/api/challengers", response_model=list[ChallengerInEffect])
    def read_challengers() -> Any:
        """The challengers that score a part of the sessions now, as pushed with `traceweir config`."""
        return answer(list(known_challengers.in_effect))

    @api.get("/api/shadows", response_model=list[ShownShadow])
    def read_shadows() -> Any:
        """The names of the shadows, and of the ended challengers, that have a topic of scores."""
        return answer([ShownShadow(name=name) for name in known_challengers.shadows])

    @api.get("/api/challenger-diff", response_model=Diff)
    def read_challenger_diff(name: Annotated[str, Query(min_length=1, max_length=100)]) -> Any:
        """What a challenger in effect (its last day) or a shadow changes on the sessions that it has scored."""
        try:
            found = challenger_diff(store, known_challengers, name, content)
        except UnknownChallengerError as error:
            raise HTTPException(404, str(error)) from None
        except NoDiffError as error:
            raise HTTPException(422, str(error)) from None
        return Response(found.model_dump_json(), media_type="application/json")

    @api.get("/api/values", response_model=DimensionValues)
    def read_values(selected: Selected) -> Any:
        """The values of dimensions and the metrics that can be selected. Filters by dimension do not apply."""
        return answer(dimension_values(store, selected))

    # An id can contain any character, so that it is a parameter and not a part of the path.
    @api.get("/api/session", response_model=SessionDetails)
    def read_session(session_id: Annotated[str, Query(min_length=1, max_length=1_024)]) -> Any:
        """A session, its results, and the replaced results. Of a very long one the last part; it says how much is left out."""
        found = session(store, session_id)
        if found is None:
            raise HTTPException(
                404,
                f"the store has no session {printable(session_id, 200)!r}: it is older than the store keeps, or not closed yet",
            )
        return answer(found)

    @api.get("/api/judge-spending", response_model=JudgeSpending)
    def read_judge_spending() -> Any:
        """What judges were paid today, in UTC, and what is left of the daily budget if TRACEWEIR_DASHBOARD_CONFIG has one."""
        return answer(judge_spending(store, now(), budget))

    @api.get("/api/not-scored", response_model=list[NotScoredCount])
    def read_not_scored(selected: Selected) -> Any:
        """Why results have no value, with an example and what to do, the most frequent reason first."""
        return answer(not_scored(store, selected))

    @api.get("/api/dead-letters", response_model=DeadLetterCounts)
    def read_dead_letters(selected: Selected, limit: _Limit = 50) -> Any:
        """Records that could not be processed. Filters by dimension do not apply: such a record has none."""
        return answer(dead_letters(store, selected, limit=limit))

    @api.exception_handler(RequestValidationError)
    async def refuse(request: Request, error: RequestValidationError) -> Response:
        problems = [f"{each['loc'][-1]}: {each['msg']}" for each in error.errors()]
        return _problem(request, 422, "; ".join(problems))

    @api.exception_handler(FilterError)
    async def refuse_filter(request: Request, error: FilterError) -> Response:
        return _problem(request, 422, str(error))

    @api.exception_handler(StarletteHTTPException)
    async def refuse_request(request: Request, error: StarletteHTTPException) -> Response:
        return _problem(request, error.status_code, str(error.detail))

    @api.exception_handler(StoreError)
    async def unavailable(request: Request, error: StoreError) -> Response:
        return _problem(request, 503, str(error))

    return api


def _problem(request: Request, status: int, detail: str) -> Response:
    sentence = printable(detail, 1_000)
    if request.url.path.startswith("/api/"):
        return Response(orjson.dumps({"detail": sentence}), status, media_type="application/json")
    return problem_page(status, sentence)
