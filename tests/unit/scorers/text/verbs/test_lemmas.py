"""Tests that the lemmas of a word are those of lemminflect, and take less memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
from importlib.resources import files

import pytest
from lemminflect import getAllLemmas

from traceweir.scorers.text.verbs.lemmas import lemmas_of

EVERY = 23
"""Every so many words of the dictionary are compared."""
BESIDE_LONGER_WORDS = ["book", "cave", "clover", "fee", "flat", "house", "off", "ok", "over", "pro"]
"""Words whose lines are sorted otherwise than the words are: "book shelf" follows "book"."""
KEPT_BY_FIRST_WORD = """
import numpy  # lemminflect imports it, and it is no dictionary
from tests.support.memory import bytes_kept
from traceweir.scorers.text.verbs.lexicon import look_up
print(bytes_kept(lambda: look_up("seats")))
"""
"""Runs in a process of its own, because only the first word reads the dictionary."""


@pytest.mark.slow
def test_words_of_the_dictionary_have_the_lemmas_of_lemminflect() -> None:
    resources = files("lemminflect") / "resources"
    lines = gzip.decompress((resources / "lemma_lu.csv.gz").read_bytes()).decode().splitlines()[::EVERY]
    lines += (resources / "lemma_overrides.csv").read_text("utf-8").splitlines()
    words = {line.partition(",")[0].lower() for line in lines} | {*BESIDE_LONGER_WORDS}
    assert {word: lemmas_of(word) for word in words} == {word: getAllLemmas(word) for word in words}


def test_unknown_words_have_no_lemmas() -> None:
    assert [lemmas_of(word) for word in ("", "aaaa", "zzzz")] == [{}, {}, {}]


@pytest.mark.slow
def test_the_first_word_builds_no_dict_of_the_whole_dictionary() -> None:
    ended = subprocess.run([sys.executable, "-c", KEPT_BY_FIRST_WORD], capture_output=True, text=True, check=True)
    assert int(ended.stdout) < 12_000_000
