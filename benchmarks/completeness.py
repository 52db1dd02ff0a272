"""Compares the speed of Traceweir's completeness scorer with that of @mastra/evals, on the same pairs, in turns.

Needs Node.js, and Mastra in a folder of its own:

    mkdir /tmp/mastra && cd /tmp/mastra && npm install @mastra/evals@1.10.2
    MASTRA=/tmp/mastra python -m benchmarks completeness

The pairs are those of `tests/parity/data/mastra_texts.json`.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

from traceweir.schemas.invocation import Content, Invocation
from traceweir.scorers.base import Measurement, MissingInput, Subject
from traceweir.scorers.metrics.completeness import Completeness

ROUNDS = 7
PAIRS = Path(__file__).parents[1] / "tests" / "parity" / "data" / "mastra_texts.json"


def main() -> None:
    """Prints both sides' median microseconds per pair and their ratio, or the reason why the comparison is skipped."""
    mastra, node = os.environ.get("MASTRA"), shutil.which("node")
    if not mastra or not node:
        print("completeness: skipped; install Node.js, and set MASTRA to a folder with @mastra/evals 1.10.2")
        return
    pairs = [(row["input"], row["output"]) for row in json.loads(PAIRS.read_text("utf-8"))]
    subjects = [
        Subject(invocation=Invocation(user_content=Content.of(question), final_response=Content.of(answer)))
        for question, answer in pairs
    ]
    script = Path(__file__).with_name("completeness_mastra.mjs")
    with subprocess.Popen([node, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process was started without pipes")

        def ask(line: str) -> str:
            print(line, file=process.stdin, flush=True)
            return process.stdout.readline() if process.stdout else ""

        theirs = json.loads(ask(json.dumps(pairs)))
        for title, scorer in (("compat", Completeness(compat="mastra")), ("default", Completeness())):
            ours = [_value(scorer, subject) for subject in subjects]
            if (
                scorer.compat
                and (off := statistics.mean(map(abs, map(float.__sub__, ours, map(float, theirs))))) > 0.03
            ):
                raise SystemExit(f"the values differ by {off:.3f} on average, so the times cannot be compared")
            our_times, their_times = [], []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                for subject in subjects:
                    _value(scorer, subject)
                our_times.append(time.perf_counter() - began)
                their_times.append(float(ask("round")))
            us, them = (statistics.median(times) / len(pairs) * 1e6 for times in (our_times, their_times))
            print(f"{title:8} {us:7.1f} us, @mastra/evals {them:8.1f} us: {them / us:5.1f} times as fast")
        process.stdin.close()


def _value(scorer: Completeness, subject: Subject) -> float:
    try:
        found = scorer.score(subject)
    except MissingInput:
        return 0.0
    if not isinstance(found, Measurement):
        raise TypeError("the pairs are short, so they are measured at once")
    return found.value


if __name__ == "__main__":
    main()
