"""Says which sessions a stream has in one minute, with a value of each, whatever the order of the scores was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.tools.alerts.open_minutes import OpenScore
from traceweir.streams.tools.alerts.watched_scores import means


@dataclass(frozen=True, slots=True)
class StreamScores:
    """The sessions of a stream in a minute."""

    sessions: Sequence[str]
    """Their ids, sorted."""
    values: Floats
    """The mean of the results of each."""
    revised: Sequence[bool]
    """Whether no result of a session was its first: it can have counted yesterday."""
    suspects: Collection[tuple[str | None, ...]]
    """Values of the fields `SUSPECTS` of all scores."""

    @classmethod
    def of(cls, scores: Sequence[OpenScore]) -> StreamScores:
        """Returns the sessions of scores; of one result the first revision and attempt counts.

        >>> first, second = (OpenScore("s", "r", each, 0, float(each), ()) for each in (0, 1))
        >>> found = StreamScores.of([second, first, first])
        >>> found.sessions, found.values.tolist(), found.revised
        (['s'], [0.0], [False])
        """
        suspects = {each.suspects for each in scores}
        by_session = {each.session: each for each in scores}
        if len(by_session) == len(scores):
            # Most sessions have one result in a stream.
            sessions = sorted(by_session)
            found = [by_session[each] for each in sessions]
            values = np.array([each.value for each in found])
            return cls(sessions, values, [each.revision != 0 or each.attempt != 0 for each in found], suspects)
        results: dict[str, dict[str, OpenScore]] = defaultdict(dict)
        for each in scores:
            known = results[each.session].get(each.result)
            if known is None or each.order < known.order:
                results[each.session][each.result] = each
        sessions = sorted(results)
        values = means([one.value for one in results[each].values()] for each in sessions)
        revised = [all(one.order != (0, 0) for one in results[each].values()) for each in sessions]
        return cls(sessions, values, revised, suspects)

    def counting(self, counts: NDArray[np.bool_]) -> tuple[Sequence[str], Floats]:
        """Returns the sessions that count, and their values."""
        return list(compress(self.sessions, counts.tolist())), self.values[counts]
