"""Finds the lemmas of an English word in lemminflect's dictionary, in its sorted lines.

lemminflect itself makes a dict of all 80,000 lines at the first word. That takes more than ten times as long as reading
the lines, and a command that scores one small file looks up few words.
"""

from __future__ import annotations

import gzip
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def lemmas_of(word: str) -> dict[str, tuple[str, ...]]:
    """Returns the lemmas of a word by part of speech, equal to those of `lemminflect.getAllLemmas`.

    Args:
        word: The word, in lower case.

    >>> lemmas_of("left")
    {'ADJ': ('left',), 'ADV': ('left',), 'NOUN': ('left',), 'VERB': ('leave',)}
    >>> lemmas_of("asdf")
    {}
    """
    found = dict(_listed(word)) | _overrides().get(word, {})
    return {part: tuple(lemma.lower() for lemma in lemmas) for part, lemmas in found.items()}


def _listed(word: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    # Imported here and below, because lemminflect imports numpy.
    from lemminflect.codecs.LemmaLUCodec import LemmaLUCodec
    from lemminflect.core.LexicalUtils import categoryToUPos

    lines = _lines()
    start = f"{word},"
    place = bisect_left(lines, start)
    while place < len(lines) and lines[place].startswith(start):
        _, category, forms = LemmaLUCodec.fromString(lines[place])
        yield categoryToUPos(category), forms
        place += 1


@cache
def _lines() -> list[str]:
    from lemminflect import config

    # They are sorted by word, and not in each version by line: "book,verb,book" comes before "book shelf,noun,bookshelf".
    return sorted(gzip.decompress(Path(config.lemma_lu_fn).read_bytes()).decode().splitlines())


@cache
def _overrides() -> dict[str, dict[str, tuple[str, ...]]]:
    from lemminflect import config
    from lemminflect.codecs.OverridesCodec import OverridesCodec

    found: dict[str, dict[str, tuple[str, ...]]] = OverridesCodec.load(config.lemma_overrides_fn)
    return found
