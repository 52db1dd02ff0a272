"""Tests that the look-up of an English word depends neither on earlier words nor on look-ups in other threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import islice, product
from string import ascii_lowercase

import pytest
from tests.support.memory import bytes_kept

from traceweir.scorers.text.elements import elements, elements_as_mastra
from traceweir.scorers.text.verbs.compromise.lexicon import look_up_as_mastra
from traceweir.scorers.text.verbs.lexicon import CACHED_WORDS, LONGEST, Word, look_up

TEXT = "The seats have been booked upon arrival, the closed doors are not seen and she was going."
WORDS = [
    "the",
    "vs",
    "seats",
    "have",
    "been",
    "booked",
    "upon",
    "closed",
    "doors",
    "are",
    "not",
    "seen",
    "she",
    "going",
]
THREADS, ROUNDS = 6, 20
IN_THREADS = f"""
import importlib, sys, threading
from traceweir.scorers.text.verbs import lexicon
from traceweir.scorers.text.verbs.compromise import lexicon as as_mastra

def classify():
    together.wait()
    found.add(str([(lexicon.look_up(word), as_mastra.look_up_as_mastra(word)) for word in {WORDS}]))

sys.setswitchinterval(1e-6)
found, together = set(), threading.Barrier({THREADS})
for _ in range({ROUNDS}):
    importlib.reload(lexicon)  # empties the caches
    importlib.reload(as_mastra)
    threads = [threading.Thread(target=classify) for _ in range({THREADS})]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(*found, sep="\\n")
"""
"""Runs in a process of its own, because reloading a module replaces its classes."""


@pytest.mark.slow
def test_concurrent_first_look_ups_in_threads_return_the_same() -> None:
    said = subprocess.run([sys.executable, "-c", IN_THREADS], capture_output=True, text=True, check=True, timeout=100)
    assert said.stdout.splitlines() == [str([(look_up(word), look_up_as_mastra(word)) for word in WORDS])]


@pytest.mark.slow
def test_a_text_has_the_same_elements_after_its_words_have_left_the_cache() -> None:
    before = elements(TEXT), elements_as_mastra(TEXT)
    for word in islice(map("".join, product(ascii_lowercase, repeat=4)), CACHED_WORDS + 1):
        look_up_as_mastra(word)
    assert (elements(TEXT), elements_as_mastra(TEXT)) == before


@pytest.mark.slow
@pytest.mark.parametrize("classify", [look_up, look_up_as_mastra])
def test_words_longer_than_the_limit_are_not_cached(classify: Callable[[str], Word]) -> None:
    assert classify("a" * (LONGEST + 1)).kind == "other"
    assert bytes_kept(lambda: [classify(letter * 1_000_000) for letter in "abcdefgh"]) < 1_000_000
