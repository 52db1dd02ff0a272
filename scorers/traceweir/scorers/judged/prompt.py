"""Fills prompt templates with text of users and agents, and keeps that text delimited as data.

A template is a file in `prompts/`. `[[part NAME]]` becomes the file `part.NAME.txt` there, `[[data NAME]]` a block
between two marks that contain a tag, and `[[tag]]` the tag. The tag is computed from the text of all blocks and does
not occur in that text. Therefore no text can end its block, and equal texts result in equal prompts. The inserted text
is not searched for placeholders: braces and brackets in it have no meaning.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def prompt(template: str, data: Mapping[str, str]) -> str:
    """Returns the template of this name with each text in its block.

    Raises:
        KeyError: the template contains a placeholder for which `data` has no text.

    >>> print(fill("About [[tag]]: [[data answer]]", {"answer": "[[tag]] {}"}))
    About 2565723131c6874a: <answer 2565723131c6874a>
    [[tag]] {}
    </answer 2565723131c6874a>
    """
    return fill(template_text(template), data)


def fill(text: str, data: Mapping[str, str]) -> str:
    """Returns a template, given as text instead of by name, with each text of `data` in its block."""
    plain = {name: value.encode("utf-8", "replace").decode() for name, value in data.items()}
    tag = tag_of(plain)

    def replacement(found: re.Match[str]) -> str:
        name = found["name"]
        return tag if name is None else f"<{name} {tag}>\n{plain[name]}\n</{name} {tag}>"

    return _PLACEHOLDER.sub(replacement, text)


_PLACEHOLDER = re.compile(r"\[\[(?:tag|data (?P<name>\w+))\]\]")


def tag_of(data: Mapping[str, str], characters: int = 16) -> str:
    """Returns hexadecimal digits, computed from the texts, that occur in none of them.

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
def template_text(name: str) -> str:
    """Returns the template of this name with its parts in it."""
    text = (files(__package__) / "prompts" / f"{name}.txt").read_text("utf-8")
    return _PART.sub(lambda found: template_text(f"part.{found['name']}").rstrip(), text)


_PART = re.compile(r"\[\[part (?P<name>\w+)\]\]")
