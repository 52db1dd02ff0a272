"""Prompts: a template of ours, filled with text of others, which stays data.

A template is a file of `prompts/`. `[[data NAME]]` in it becomes a block between two marks that bear a tag, and `[[tag]]` that tag. It
is computed from the text in all blocks and stands nowhere in it, so no text can end its block; and the same text gives the same prompt.
What is filled in is never looked at again: braces and brackets in it mean nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def prompt(template: str, data: Mapping[str, str]) -> str:
    """The template of this name with each text in its block.

    Raises:
        KeyError: the template asks for a text that is not given.

    >>> print(fill("About [[tag]]: [[data answer]]", {"answer": "[[tag]] {}"}))
    About 2565723131c6874a: <answer 2565723131c6874a>
    [[tag]] {}
    </answer 2565723131c6874a>
    """
    return fill(_template(template), data)


def fill(text: str, data: Mapping[str, str]) -> str:
    """As `prompt`, for a template that is given itself."""
    plain = {name: value.encode("utf-8", "replace").decode() for name, value in data.items()}
    tag = tag_of(plain)

    def put(found: re.Match[str]) -> str:
        name = found["name"]
        return tag if name is None else f"<{name} {tag}>\n{plain[name]}\n</{name} {tag}>"

    return _PLACE.sub(put, text)


_PLACE = re.compile(r"\[\[(?:tag|data (?P<name>\w+))\]\]")


def tag_of(data: Mapping[str, str], characters: int = 16) -> str:
    """So many hexadecimal digits, computed from the texts, that stand in none of them.

    >>> tag_of({"answer": "0123456789abcde"}, 1)
    'f'
    """
    digest = hashlib.sha256()
    for name in sorted(data):
        text = data[name].encode()
        digest.update(f"{name} {len(text)} ".encode() + text)
    while True:
        tag = digest.hexdigest()[:characters]
        if not any(tag in text for text in data.values()):
            return tag
        digest.update(b"again")


@cache
def _template(name: str) -> str:
    return (files(__package__) / "prompts" / f"{name}.txt").read_text("utf-8")
