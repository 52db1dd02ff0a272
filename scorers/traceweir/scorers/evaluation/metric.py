"""Defines a metric of a config, and the digest of everything that its values depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue

from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Score, Source, Status
from traceweir.schemas.text import printable
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import ExpectedParts, expected_of
from traceweir.scorers.evaluation.cascade import SessionChoice, When, choice_of, settling_choice
from traceweir.scorers.evaluation.outcome import Unmeasured
from traceweir.scorers.evaluation.thresholds import status_of


@dataclass(frozen=True, slots=True)
class Metric:
    """Holds a criterion of the config."""

    name: str
    threshold: float | None
    scorer: Scorer | None
    """The scorer; None for a metric of another system that Traceweir does not compute."""
    digest: str
    """Digest of everything that the values depend on, without the threshold; part of every result's id."""
    runs_on: frozenset[ExpectedParts] | None = None
    """The kinds of expectations for which an invocation is measured; None for all invocations."""

    code: str | None = None
    """The code that the config names for this metric in `custom_metrics`, as in ADK; Traceweir never runs it."""

    when: When | None = None
    """When a session is measured, by the scores of other criteria; None: always."""

    settle_s: float = 0.0
    """Seconds that a worker waits for a later revision before it measures a session; 0: it does not wait."""

    needs_input: bool = False
    """Whether a subject without the metric's input has no Score, in place of a NOT_EVALUATED `missing_input`."""

    def applies(self, reference: Reference | None) -> bool:
        """Returns whether the metric measures an invocation with this reference."""
        return self.runs_on is None or expected_of(reference) in self.runs_on

    def status_of(self, value: float) -> Status:
        """Returns the status of a value: PASSED on the threshold and on the better side of it, or without a threshold."""
        return status_of(value, self.threshold, self.scorer.direction if self.scorer else "higher")

    def choice(
        self, share: float, point: float, session_id: str, totals: Mapping[str, Score], *, settling: bool = False
    ) -> SessionChoice:
        """Returns whether a session is measured.

        Args:
            share: As for `choice_of`, like the next three.
            point: The session's number for the sampling.
            session_id: The session.
            totals: The session's scores of the criteria that were measured before.
            settling: Whether a criterion with `settle_s` is not measured yet.
        """
        if self.scorer is None:
            return SessionChoice(Unmeasured("unsupported", self.unsupported_because), None)
        choice = choice_of(self.name, self.when, share, point, session_id, totals)
        if settling and self.settle_s and choice.left_out is None:
            return settling_choice(
                f"{self.name} is measured after {self.settle_s:g} s without a later revision", choice
            )
        return choice

    @property
    def unsupported_because(self) -> str:
        """The reason why there is no scorer, as a sentence."""
        if self.code is None:
            return f"{self.name} is a metric of another system that Traceweir does not compute"
        return (
            f"the config computes {self.name} with {printable(self.code, 100)}, which Traceweir does not run; install a "
            "package with a scorer of this name in the entry point group 'traceweir.scorers'"
        )

    @property
    def version(self) -> str:
        """The scorer's version; empty if there is no scorer."""
        return self.scorer.version if self.scorer else ""

    @property
    def source(self) -> Source | None:
        """What measures the value; None if there is no scorer."""
        if self.scorer is None:
            return None
        return "model" if self.scorer.judged else "code"


def digest_of(
    name: str,
    scorer: Scorer,
    sampling: Mapping[str, JsonValue] | None = None,
    fallback: Sequence[str] = (),
    windows: Mapping[str, JsonValue] | None = None,
) -> str:
    """Returns the metric digest of a scorer's values.

    The list of models counts, and not who answers: a later revision replaces an earlier one whoever has answered.

    Args:
        name: The metric's name.
        scorer: What computes the values.
        sampling: The sampling parameters of the scorer's model in the judge section, if any is set.
        fallback: The models that are asked when the scorer's own is unavailable.
        windows: The windows of these models in the judge section, if any is set; they decide what a judge reads.
    """
    options = scorer.decisive_options() | ({"judge.options": dict(sampling)} if sampling else {})
    options |= {"judge.window_tokens": dict(windows)} if windows else {}
    judge = scorer.judge_model if not fallback else canonical([scorer.judge_model, *fallback])
    return metric_digest(name, scorer.version, canonical(options), judge=judge)


@lru_cache(maxsize=1024)
def metric_digest(
    metric: str, version: str, options: str, embedder_id: str | None = None, judge: str | None = None
) -> str:
    """Returns the SHA-256 of everything that a metric's values depend on.

    Args:
        metric: The metric's full name.
        version: The scorer's version.
        options: The scorer's options as canonical JSON, without the threshold.
        embedder_id: The id of the embedder; None if the metric uses none.
        judge: The name of the judge model, or the list of models as canonical JSON; None if the metric asks none.
    """
    parts = {"metric": metric, "version": version, "options": options, "judge": judge, "embedder": embedder_id}
    return sha256(canonical(parts))


def canonical(value: object) -> str:
    """Returns JSON with sorted keys and without white space, so that equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256(text: str) -> str:
    """Returns the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
