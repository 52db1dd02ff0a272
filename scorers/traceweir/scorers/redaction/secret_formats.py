"""Reads the table of secret formats, `secret_formats.tsv`: one row per format, with the source of the format.

Columns, separated by tabs:

- `name`: the format. `kind`: the kind in the published token.
- `keywords`: lower-case texts, separated by `|`. A text is searched for the format only if it contains one of them, in
  any case. `*` means: only if it contains a run of 40 characters without a space.
- `min_entropy`: minimum Shannon entropy of the secret in bits per character. Placeholders are below the minimum.
- `check`: what else holds for the secret (`FormatCheck`, several joined by `+`), or `-`. `apart` marks a prefix that ends
  words too (`task-`, `benchmark_test_`): behind a letter, a digit, `_` or `-` the secret must mix cases and digits.
  `service` marks a secret that only the name of its
  service reveals: the keyword stands at most 48 characters before the secret, on the same line.
- `pattern`: in RE2's syntax, for ASCII. If the pattern has a group, the group is the secret. A length has no upper bound
  where the provider can change the length.
- `source`: the provider's documentation of the format, or of the secret.

The order of rows matters where two formats match: the kind of the first row is published.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple, cast, get_args

FormatCheck = Literal[
    "-", "digit", "mixed", "random", "unwordy", "basic", "cookie", "address", "database", "service", "apart"
]
TABLE = "secret_formats.tsv"
COLUMNS = ("name", "kind", "keywords", "min_entropy", "check", "pattern", "source")
MAX_SERVICE_DISTANCE = 48


class SecretFormat(NamedTuple):
    """A row of the table."""

    name: str
    kind: str
    keywords: tuple[str, ...]
    min_entropy: float
    checks: tuple[FormatCheck, ...]
    pattern: str
    """The whole pattern: for a secret of a service with the name of the service."""
    source: str


@cache
def secret_formats() -> tuple[SecretFormat, ...]:
    """Returns the rows of the table.

    Raises:
        ValueError: a row does not have the columns of the table, or has an unknown check.
    """
    header, *lines = files(__package__).joinpath(TABLE).read_text("utf-8").splitlines()
    if tuple(header.split("\t")) != COLUMNS:
        raise ValueError(f"{TABLE}: the first line must name the columns {', '.join(COLUMNS)}")
    return tuple(read_row(line) for line in lines)


def read_row(line: str) -> SecretFormat:
    """Returns the format of a line.

    Raises:
        ValueError: the line does not have seven columns, or has an unknown check.
    """
    cells = line.split("\t")
    if len(cells) != len(COLUMNS) or not {*cells[4].split("+")} <= {*get_args(FormatCheck)}:
        raise ValueError(f"{TABLE}: {cells[0]!r} must have {len(COLUMNS)} columns, the fifth known checks: {line!r}")
    name, kind, keywords, min_entropy, check, pattern, source = cells
    checks = cast("tuple[FormatCheck, ...]", tuple(check.split("+")))
    words = tuple(keywords.split("|")) if keywords != "*" else ()
    if check == "service":
        pattern = rf"(?i:{keywords})([^\n]{{0,{MAX_SERVICE_DISTANCE}}}?[^\nA-Za-z0-9])({pattern})(?:$|[^A-Za-z0-9])"
    return SecretFormat(name, kind, words, float(min_entropy), checks, pattern, source)
