"""Compares the speed of Traceweir's response_match_score with google-adk's evaluator, on the same pairs, in turns.

Needs google-adk in an environment of its own, for it would pull its dependencies into this one:

    python -m venv /tmp/adk && /tmp/adk/bin/pip install google-adk==2.13.0 rouge-score
    ADK_PYTHON=/tmp/adk/bin/python python -m benchmarks.response_match
"""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.reference import Reference
from traceweir.scorers import ResponseMatch, Subject

ROUNDS = 9
PAIRS = 300
ENGLISH = """the your our refund flight booking was is has been will be issued confirmed cancelled changed to from for and with
passenger passengers card account within seven business days reservation seats economy basic insurance policy agents connecting
requested"""
KOREAN = """예약이 항공편을 취소했습니다 변경되었습니다 환불은 카드로 좌석을
확인했습니다 승객의 요청하신 일정을 서울에서 부산으로 내일 오전에"""

Pair = tuple[str, str]


def pairs_of(vocabulary: str, length: int, drawn: random.Random) -> list[Pair]:
    """Returns pairs of a response and a reference that share some of their words."""
    words = vocabulary.split()
    texts = [[drawn.choice(words) for _ in range(length)] for _ in range(PAIRS)]
    return [
        (" ".join(text) + ".", " ".join(word if drawn.random() < 0.7 else drawn.choice(words) for word in text))
        for text in texts
    ]


def compare(title: str, pairs: Sequence[Pair], adk: str) -> tuple[float, float]:
    """Prints both sides' median microseconds per pair, and their ratio."""
    scorer = ResponseMatch()
    subjects = [
        Subject(
            invocation=Invocation(final_response=Content.of(response)),
            reference=Reference(final_response=Content.of(reference)),
        )
        for response, reference in pairs
    ]
    script = Path(__file__).with_name("response_match_adk.py")
    with subprocess.Popen([adk, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process was started without pipes")

        def ask(line: str) -> str:
            print(line, file=process.stdin, flush=True)
            return process.stdout.readline() if process.stdout else ""

        theirs = json.loads(ask(json.dumps(pairs)))
        ours = [scorer.score(subject).value for subject in subjects]
        if ours != theirs:
            raise SystemExit(f"{title}: the values differ, so the times cannot be compared")
        our_times, their_times = [], []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for subject in subjects:
                scorer.score(subject)
            our_times.append(time.perf_counter() - began)
            their_times.append(float(ask("round")))
        process.stdin.close()
    ours_us, theirs_us = (statistics.median(times) / len(pairs) * 1e6 for times in (our_times, their_times))
    show(title, ours_us, theirs_us)
    return ours_us, theirs_us


def show(title: str, ours_us: float, theirs_us: float) -> None:
    """Prints a line of the comparison."""
    print(f"{title:24} {ours_us:7.1f} us, google-adk {theirs_us:7.1f} us: {theirs_us / ours_us:5.1f} times as fast")


def main() -> None:
    """Prints the comparison for three kinds of text, or the reason why it is skipped."""
    adk = os.environ.get("ADK_PYTHON")
    if not adk:
        print(
            "response_match: skipped; set ADK_PYTHON to the python of an environment that has google-adk 2.13.0 installed"
        )
        return
    print(
        f"response_match on {platform.machine()}, Python {sys.version.split()[0]}, {PAIRS} pairs, median of {ROUNDS} rounds in turns"
    )
    drawn = random.Random(7)
    kinds = [("English, 30 words", ENGLISH, 30), ("English, 5 words", ENGLISH, 5), ("Korean, 15 words", KOREAN, 15)]
    times = [compare(title, pairs_of(vocabulary, length, drawn), adk) for title, vocabulary, length in kinds]
    show("one of each", sum(ours for ours, _ in times), sum(theirs for _, theirs in times))


if __name__ == "__main__":
    main()
