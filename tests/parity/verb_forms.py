"""Prints the inflected forms of verbs that lemminflect knows, one a line, for `record_mastra_words.mjs`."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from importlib.resources import files


def main() -> None:
    packed = (files("lemminflect") / "resources" / "lemma_lu.csv.gz").read_bytes()
    for word, kind, lemmas in csv.reader(io.StringIO(gzip.decompress(packed).decode())):
        if kind == "verb" and word.isascii() and word.isalpha() and word not in lemmas.split("/"):
            sys.stdout.write(f"{word}\n")


if __name__ == "__main__":
    main()
