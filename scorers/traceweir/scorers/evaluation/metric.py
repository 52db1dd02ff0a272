"""A metric as a config asks for it, and the digest of all that its values depend on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

from traceweir.schemas.reference import Reference
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import Expected, expected_of


@dataclass(frozen=True, slots=True)
class Metric:
    """A criterion of the config."""

    name: str
    threshold: float | None
    scorer: Scorer | None
    """None: a metric of another system's that nothing here computes."""
    digest: str
    """What the measurement depends on, the threshold left out; part of every result's id."""
    runs_on: frozenset[Expected] | None = None
    """Of which invocations it is measured, by what was expected of them; None: of all."""

    def applies(self, reference: Reference | None) -> bool:
        """Whether an invocation of which this is expected is measured at all."""
        return self.runs_on is None or expected_of(reference) in self.runs_on

    @property
    def version(self) -> str:
        """The scorer's version, empty without one."""
        return self.scorer.version if self.scorer else ""


def digest_of(name: str, scorer: Scorer) -> str:
    """The metric digest of a scorer's values."""
    return metric_digest(name, scorer.version, canonical(scorer.decisive_options()), judge=scorer.judge_model)


@lru_cache(maxsize=1024)
def metric_digest(
    metric: str, version: str, options: str, embedder_id: str | None = None, judge: str | None = None
) -> str:
    """SHA-256 of what a metric's values depend on. `options` is canonical JSON, without the threshold."""
    parts = {"metric": metric, "version": version, "options": options, "judge": judge, "embedder": embedder_id}
    return sha256(canonical(parts))


def canonical(value: object) -> str:
    """The JSON text that is the same for equal values: keys sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256(text: str) -> str:
    """The digest of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
