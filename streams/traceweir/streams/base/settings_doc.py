"""Generates the settings table in docs/configuration.md.

`python -m traceweir.streams.base.settings_doc` writes the table; `--check` compares the page with the code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from traceweir.schemas.export import texts_below_fields
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings

PAGE = Path("docs/configuration.md")
BEGIN = "<!-- settings: begin -->\n"
END = "<!-- settings: end -->\n"


def settings_table() -> str:
    """Returns all settings as a Markdown table, one row per setting, in the order of the code."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    meanings = texts_below_fields(Settings)
    for name, field in Settings.model_fields.items():
        meaning = " ".join(meanings[name].split()).replace("|", "\\|")
        default = "" if field.default is None else f"`{_plain(field.default)}`"
        rows.append(f"| `{ENV_PREFIX}{name.upper()}` | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def with_table(page: str) -> str:
    """Returns the page with a new table between its two marks.

    Raises:
        ValueError: a mark is missing.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(
            f"{PAGE}: the page must contain the lines {BEGIN.strip()!r} and {END.strip()!r}, in this order"
        )
    return f"{before}{BEGIN}\n{settings_table()}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Writes the table and returns 0; with `--check` writes nothing, and returns 1 if the table is stale."""
    page = PAGE.read_text(encoding="utf-8")
    current = with_table(page)
    if "--check" not in arguments:
        PAGE.write_text(current, encoding="utf-8")
        return 0
    if page != current:
        sys.stderr.write(f"{PAGE} is stale; run `make format`\n")
        return 1
    return 0


def _plain(default: object) -> str:
    """Returns the default as the environment would hold it; a float without trailing zeros."""
    return f"{default:g}" if isinstance(default, float) else str(default)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
