"""Prints lemminflect's verb forms for `record_mastra_words.mjs`: kind, word and infinitive in each line."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from importlib.resources import files

from traceweir.scorers.text.verbs.lexicon import LONGEST, look_up

KINDS = frozenset({"s", "ed", "ing", "verb", "base"})


def main() -> None:
    packed = (files("lemminflect") / "resources" / "lemma_lu.csv.gz").read_bytes()
    listed = {word for word, *_ in csv.reader(io.StringIO(gzip.decompress(packed).decode()))}
    for word in sorted(listed):
        if word.isascii() and word.isalpha() and word.islower() and 2 < len(word) <= LONGEST:
            found = look_up(word)
            if found.kind in KINDS:
                sys.stdout.write(f"{found.kind} {word} {found.infinitive}\n")


if __name__ == "__main__":
    main()
