"""Extension of griffe that turns the doctests of docstrings into code blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class DoctestBlocks(griffe.Extension):
    """Puts a code fence around each doctest, because Markdown reads `>>>` as a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Changes the docstring of a module, class or function after griffe has read it."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
