"""Records what glide-py and ppi-python compute from labels and verdicts, for `test_prediction_powered.py`.

Needs Python 3.12, in an environment of its own:

    python3.12 -m venv there && there/bin/pip install glide-py==0.11.0 ppi-python==0.2.3
    there/bin/python tests/parity/record_labels.py >tests/parity/data/label_statistics.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from glide.estimators import ClusteredClassicalMeanEstimator, IPWClassicalMeanEstimator, PPIMeanEstimator
from glide.estimators.clustered_ppi import ClusteredPPIMeanEstimator
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

CASES = {"binary": (0.7, 0.95, 0.6), "useful": (0.5, 0.9, 0.9), "seldom": (0.9, 0.9, 0.8)}
LABELS = 100
OTHERS = 400


def drawn(seed: int, rate: float, passing: float, failing: float) -> tuple[Any, Any]:
    """Returns the true answers and the verdicts of a judge."""
    random = np.random.default_rng(seed)
    truth = (random.random(LABELS + OTHERS) < rate).astype(float)
    passes = np.where(truth == 1, passing, 1 - failing)
    return truth, (random.random(LABELS + OTHERS) < passes).astype(float)


def record() -> list[dict[str, Any]]:
    """Returns a document for each case."""
    found = []
    for seed, (name, rates) in enumerate(CASES.items()):
        truth, verdicts = drawn(seed, *rates)
        labels = np.where(np.arange(len(truth)) < LABELS, truth, np.nan)
        mean = PPIMeanEstimator().estimate(labels, verdicts)
        sessions = np.concatenate((np.arange(LABELS) // 5, 1_000 + np.arange(OTHERS) // 8))
        clustered = ClusteredClassicalMeanEstimator().estimate(labels, sessions)
        powered = ClusteredPPIMeanEstimator().estimate(labels, verdicts, sessions)
        probabilities = np.where(np.arange(LABELS) % 4 == 0, 0.5, 0.25)
        weighted = IPWClassicalMeanEstimator().estimate(truth[:LABELS], probabilities)
        parts = truth[:LABELS], verdicts[:LABELS], verdicts[LABELS:]
        found.append(
            {
                "name": name,
                "truth": truth[:LABELS].astype(int).tolist(),
                "verdicts": verdicts.astype(int).tolist(),
                "glide": {"mean": float(mean.mean), "std": float(mean.std)},
                "glide_clustered": {"mean": float(clustered.mean), "std": float(clustered.std)},
                "glide_clustered_ppi": {"mean": float(powered.mean), "std": float(powered.std)},
                "glide_weighted": {"mean": float(weighted.mean)},
                "ppi": {
                    "mean": float(np.ravel(ppi_mean_pointestimate(*parts))[0]),
                    "interval": [float(np.ravel(each)[0]) for each in ppi_mean_ci(*parts, alpha=0.05)],
                },
            }
        )
    return found


if __name__ == "__main__":
    json.dump(record(), sys.stdout)
    sys.stdout.write("\n")
