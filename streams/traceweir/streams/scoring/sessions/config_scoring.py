"""Scores each session with the config that was chosen for it, where the topic `configs` has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from traceweir.schemas.dimensions import session_dimensions
from traceweir.schemas.events import InvocationRecorded
from traceweir.schemas.session import Session
from traceweir.schemas.turns import turns_of
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.scoring.configs.selectors import ANY, Configs, chosen
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import Measure


class ConfigScoring:
    """The scorings of all configs that a process has received.

    Args:
        file: The scoring by the worker's config file.
        make: Returns the scoring by another plan.
    """

    def __init__(self, file: Measure, make: Callable[[Plan], Measure]) -> None:
        self._file = file
        self._make = make
        self._by_id: dict[str, Measure] = {}

    def add(self, config_id: str, document: bytes) -> None:
        """Adds a config, unless it is known.

        Raises:
            ConfigError: the config cannot be used; the worker checks each config before.
        """
        if config_id not in self._by_id:
            self._by_id[config_id] = self._make(read_plan(document))

    def under(self, configs: Configs) -> Measure:
        """Returns the scoring of sessions for which these configs are in effect; each of them was added before."""

        async def measure(session: Session, known: Sequence[JudgeVerdict], attempt: int) -> ScoringResult:
            name = self._choose(configs, session)
            scoring = self._file if name is None else self._by_id[name]
            return await scoring(session, known, attempt)

        return measure

    def _choose(self, configs: Configs, session: Session) -> str | None:
        if len(configs) == 1 and configs[0][0] == ANY:
            return configs[0][1]
        return chosen(configs, *_place(session))


def _place(session: Session) -> tuple[str | None, str | None]:
    """Returns the app and the environment of a session's scores.

    The invocations, which scoring builds once more, are needed only if the events name several, or if a row has them.
    """
    events = [event for event in session.current_events if event.of_invocation]
    # The scores of a session that was withdrawn replace those of the same config.
    if not events:
        events = [event for event in session.events if event.of_invocation]
    apps = {event.app_name for event in events if event.app_name}
    environments = {event.environment for event in events if event.environment}
    if len(apps) > 1 or len(environments) > 1 or any(isinstance(event, InvocationRecorded) for event in events):
        found = session_dimensions([turn.dimensions for turn in turns_of(session)])
        return found.app_name, found.environment
    return next(iter(apps), None), next(iter(environments), None)
