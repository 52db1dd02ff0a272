"""Generates the list of settings in docs/configuration.md.

`python -m traceweir.streams.base.settings_doc` writes the list; `--check` compares the page with the code.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from traceweir.schemas.export import texts_below_fields
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings

PAGE = Path("docs/configuration.md")
BEGIN = "<!-- settings: begin -->\n"
END = "<!-- settings: end -->\n"
_WIDTH = 119
"""Maximum length of a line, as of all prose in the pages."""


def settings_list() -> str:
    """Returns all settings as a Markdown list, one entry per setting, in the order of the code."""
    meanings = texts_below_fields(Settings)
    return "".join(_entry(name, field.default, meanings[name]) for name, field in Settings.model_fields.items())


def with_table(page: str) -> str:
    """Returns the page with a new list between its two marks.

    Raises:
        ValueError: a mark is missing.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(
            f"{PAGE}: the page must contain the lines {BEGIN.strip()!r} and {END.strip()!r}, in this order"
        )
    return f"{before}{BEGIN}\n{settings_list()}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Writes the list and returns 0; with `--check` writes nothing, and returns 1 if the list is stale."""
    page = PAGE.read_text(encoding="utf-8")
    current = with_table(page)
    if "--check" not in arguments:
        PAGE.write_text(current, encoding="utf-8")
        return 0
    if page != current:
        sys.stderr.write(f"{PAGE} is stale; run `make format`\n")
        return 1
    return 0


def _entry(name: str, default: object, meaning: str) -> str:
    shown = "" if default is None else f" (`{_plain(default)}`)"
    text = f"- `{ENV_PREFIX}{name.upper()}`{shown}: {meaning}"
    lines = textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def _plain(default: object) -> str:
    """Returns the default as the environment would hold it; a float without trailing zeros."""
    return f"{default:g}" if isinstance(default, float) else str(default)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
