"""Warns of a judge that does not answer, because its sessions wait for minutes before their scores say so."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

NO_ANSWER_S = 20.0
"""Seconds without any answer of a model after which its silence is worth a warning."""
WARN_AGAIN_S = 600.0
"""Minimum number of seconds between two warnings of a model: a slow one would cause a warning for each answer."""


class AnswerWatch:
    """Warns once of each model that leaves its questions without an answer.

    Args:
        address: The address of the API, without secrets.
        no_answer_s: Seconds without an answer after which a warning is logged.
        attempt_s: The limit for one attempt, as the warning names it.
    """

    def __init__(self, address: str, no_answer_s: float, attempt_s: float) -> None:
        self._address = address
        self._no_answer_s = no_answer_s
        self._attempt_s = attempt_s
        self._models: dict[str, _Model] = {}

    @contextmanager
    def question(self, model: str, metric: str) -> Iterator[AskedQuestion]:
        """Watches a question from its first attempt to the end of the block.

        Args:
            model: Name of the model, without secrets.
            metric: The criterion that waits for the answer.
        """
        watched = self._models.get(model)
        if watched is None:
            watched = self._models[model] = _Model(model, self._address, self._no_answer_s, self._attempt_s)
        asked = AskedQuestion(watched, metric)
        try:
            yield asked
        finally:
            asked.end()


class AskedQuestion:
    """One question, which a model has to answer."""

    def __init__(self, model: _Model, metric: str) -> None:
        self._model = model
        self._metric = metric
        self._is_sent = False

    def sent(self) -> None:
        """Notes that an attempt begins."""
        if not self._is_sent:
            self._is_sent = True
            self._model.wait(self._metric)

    def answered(self) -> None:
        """Notes that the model has answered, even if it refuses this question."""
        self._model.answered()

    def failed(self, why: str) -> None:
        """Notes that an attempt got no answer; `why` is without secrets."""
        self._model.last_failure = why

    def given_up(self) -> None:
        """Notes that there is no further attempt."""
        self._model.warn("a question has failed")

    def end(self) -> None:
        """Notes that nobody waits for an answer any more."""
        if self._is_sent:
            self._model.wait_no_more(self._metric)


class _Model:
    def __init__(self, name: str, address: str, no_answer_s: float, attempt_s: float) -> None:
        self._name = name
        self._address = address
        self._no_answer_s = no_answer_s
        self._attempt_s = attempt_s
        self._waiting: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._silent_since_s = 0.0
        self._warned_at_s: float | None = None
        self._is_said = False
        self.last_failure = ""

    def wait(self, metric: str) -> None:
        self._waiting[metric] += 1
        if self._timer is None:
            self._start()

    def wait_no_more(self, metric: str) -> None:
        self._waiting -= Counter((metric,))
        if not self._waiting:
            self._stop()

    def answered(self) -> None:
        self._is_said = False
        self.last_failure = ""
        self._stop()
        if self._waiting:
            self._start()

    def warn(self, what: str) -> None:
        loop = asyncio.get_running_loop()
        too_soon = self._warned_at_s is not None and loop.time() < self._warned_at_s + WARN_AGAIN_S
        if self._is_said or too_soon:
            return
        self._is_said = True
        self._warned_at_s = loop.time()
        log.warning(
            "the judge %s at %s does not answer (%s). Criteria that wait for it: %s. %sAn attempt can take %g s "
            "(judge.timeout_s), all attempts for a criterion TRACEWEIR_JUDGE_TIMEOUT_S seconds",
            self._name,
            self._address,
            what,
            ", ".join(sorted(self._waiting)),
            f"Last failure: {self.last_failure}. " if self.last_failure else "",
            self._attempt_s,
        )

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._silent_since_s = loop.time()
        due_s = self._silent_since_s + self._no_answer_s
        if self._warned_at_s is not None:
            due_s = max(due_s, self._warned_at_s + WARN_AGAIN_S)
        self._timer = loop.call_at(due_s, self._warn_of_silence)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _warn_of_silence(self) -> None:
        silent_s = asyncio.get_running_loop().time() - self._silent_since_s
        self.warn(f"for {silent_s:.0f} s")
