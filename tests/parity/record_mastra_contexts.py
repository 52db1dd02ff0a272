"""Computes the weights of `traceweir.scorers.text.verbs.compromise.contexts` from the results of compromise 14 for many texts.

    mkdir /tmp/mastra && cd /tmp/mastra && npm install @mastra/evals@1.10.2     # brings compromise 14
    MASTRA=/tmp/mastra .venv/bin/python -m tests.parity.record_mastra_contexts TEXTS...

TEXTS are files of English texts, one text per line. The texts of `data/mastra_texts.json` and
`data/mastra_context_texts.txt` are always included, and count three times. The recorded weights come from 22,000
further texts: the examples of WordNet 3.0, Debian's fortunes, handbook, FAQ, maintainers' guide and developers'
reference, chatterbot-corpus 1.3.3, descriptions and docstrings of Python packages, help texts of command line tools,
and turns of tau-bench's airline conversations. The script uses only the results of compromise, not its code.

The weights are those of a logistic regression with an L1 penalty, so that most features have no weight. Proximal
gradient steps with momentum compute them; every run computes the same weights.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from importlib.resources import files
from pathlib import Path

import numpy as np

from traceweir.scorers.text.elements import tokens_as_mastra
from traceweir.scorers.text.verbs.compromise.contexts import DROPPED, WordOutcome, features
from traceweir.scorers.text.verbs.infinitives import AUXILIARIES
from traceweir.scorers.text.verbs.lexicon import Token

DATA = Path(__file__).parent / "data"
TIMES = 3.0
"""Weight of the texts of this folder."""
LEAST = 4
"""Minimum number of rows with a feature."""
COST = 1.0
STEPS = 500
SCALE = 4
"""Scale of the weights, which are stored as integers."""
SLOT = re.compile(r"=$|clause:|word=|main[a-z]*:|[-+0-9]+(?:word=|form:|=|:)")


class Rows:
    """Holds the rows of one kind of word: their features, whether the outcome was reached, and their weights."""

    def __init__(self) -> None:
        self.features: list[list[str]] = []
        self.outcomes: list[bool] = []
        self.times: list[float] = []

    def add(self, found: list[str], outcome: bool, times: float) -> None:
        self.features.append(found)
        self.outcomes.append(outcome)
        self.times.append(times)


def mastra_terms(texts: Sequence[str]) -> list[list[str]]:
    script = Path(__file__).with_name("record_mastra_terms.mjs")
    done = subprocess.run(["node", str(script)], input=json.dumps(texts), capture_output=True, text=True, check=True)
    answers: list[list[str]] = json.loads(done.stdout)
    return answers


def outcomes(tokens: Sequence[Token], left: Sequence[str]) -> list[WordOutcome | None]:
    """Returns the outcome of each token; empty if the outcomes are ambiguous."""
    found: list[WordOutcome | None] = [None] * len(tokens)
    places = [place for place, token in enumerate(tokens) if token.text]
    matcher = SequenceMatcher(None, [tokens[place].text for place in places], left, autojunk=False)
    for tag, begin, end, left_begin, left_end in matcher.get_opcodes():
        among = {*left[left_begin:left_end]}
        for place in places[begin:end]:
            token = tokens[place]
            if tag == "equal" or token.text in among:
                found[place] = WordOutcome.KEPT
            elif token.word.infinitive in among:
                found[place] = WordOutcome.CHANGED
            elif tag == "delete" or token.word.kind in AUXILIARIES:
                found[place] = WordOutcome.DROPPED
    return found


def rows_of(texts: Sequence[str], times: float, rows: defaultdict[str, Rows]) -> None:
    for text, left in zip(texts, mastra_terms(texts), strict=True):
        tokens = tokens_as_mastra(text)
        known = outcomes(tokens, left)
        for place, found in features(tokens, [outcome or WordOutcome.KEPT for outcome in known]):
            outcome, kind = known[place], tokens[place].word.kind
            negated = kind == "do" and place + 1 < len(tokens) and tokens[place + 1].text in ("not", "never")
            if outcome is None or negated:
                continue
            rows[DROPPED + kind].add(found, outcome is WordOutcome.DROPPED, times)
            if outcome is not WordOutcome.DROPPED:
                rows[kind].add(found, outcome is WordOutcome.CHANGED, times)


def weights(rows: Rows) -> dict[str, float]:
    counts = Counter(name for found in rows.features for name in found)
    names = sorted(name for name, count in counts.items() if count >= LEAST)
    number = {name: at for at, name in enumerate(names)}
    none = len(names)
    of_rows = np.full((len(rows.features), max(map(len, rows.features))), none)
    for at, found in enumerate(rows.features):
        numbers = [number[name] for name in found if name in number]
        of_rows[at, : len(numbers)] = numbers
    outcome, times = np.asarray(rows.outcomes, float), np.asarray(rows.times)
    width = of_rows.shape[1]

    def spread(values: np.ndarray) -> np.ndarray:
        sums = np.bincount(of_rows.ravel(), weights=np.repeat(values, width), minlength=none + 1)
        sums[none] = 0.0
        return sums

    def loss(found: np.ndarray) -> float:
        sums = found[of_rows].sum(1)
        return float((times * (np.logaddexp(0, sums) - outcome * sums)).sum())

    curvature = spread(times * (of_rows < none).sum(1)).max() / 32
    best = ahead = np.zeros(none + 1)
    momentum = 1.0
    for _ in range(STEPS):
        slope = spread(times * (1 / (1 + np.exp(-ahead[of_rows].sum(1))) - outcome))
        while True:
            step = ahead - slope / curvature
            step = np.sign(step) * np.maximum(np.abs(step) - COST / curvature, 0)
            moved = step - ahead
            if loss(step) <= loss(ahead) + slope @ moved + curvature / 2 * moved @ moved + 1e-9:
                break
            curvature *= 2
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = step + (momentum - 1) / following * (step - best)
        best, momentum = step, following
    return dict(zip(names, best[:none].tolist(), strict=True))


def lines(kind: str, found: dict[str, float]) -> Iterator[str]:
    slots: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, weight in sorted(found.items()):
        if whole := round(weight * SCALE):
            of, feature = name.split(" ")
            slot = SLOT.match(feature)
            if slot is None:
                raise ValueError(f"the feature {feature!r} begins with no known slot")
            slots[of, slot[0]].append(f"{feature[slot.end() :]}~{whole}")
    before = DROPPED if kind.startswith(DROPPED) else ""
    return (" ".join([before + of, slot, *values]) for (of, slot), values in sorted(slots.items()))


def main() -> None:
    pairs = json.loads((DATA / "mastra_texts.json").read_text("utf-8"))
    ours = [pair[side] for pair in pairs for side in ("input", "output")]
    ours += (DATA / "mastra_context_texts.txt").read_text("utf-8").splitlines()
    rows: defaultdict[str, Rows] = defaultdict(Rows)
    rows_of(ours, TIMES, rows)
    for name in sys.argv[1:]:
        rows_of(Path(name).read_text("utf-8").splitlines(), 1.0, rows)
    found = [
        line
        for kind, of_kind in sorted(rows.items())
        if any(of_kind.outcomes)
        for line in lines(kind, weights(of_kind))
    ]
    target = files("traceweir.scorers") / "words" / "compromise_contexts.txt"
    Path(str(target)).write_text("\n".join(found) + "\n", "utf-8")


if __name__ == "__main__":
    main()
