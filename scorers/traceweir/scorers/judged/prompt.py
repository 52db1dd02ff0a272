"""Fills prompt templates with text of users and agents, and keeps that text delimited as data.

A template is a file in `prompts/`. `[[part NAME]]` becomes the file `part.NAME.txt` there, `[[data NAME]]` a block
between two marks that contain a tag, `[[text NAME]]` a text of the config, and `[[tag]]` the tag. The lines from
`[[if NAME]]` to `[[end]]` are left out if there is no text of this name. `[[session]]` is the boundary: what stands
before it is equal for all sessions of an agent. The inserted text is not searched for placeholders: braces and brackets
in it have no meaning.

The tag is public, and does not occur in the text of any block, so that no text can end its block. Whoever sends the
prompt to a model puts a secret tag in its place, which no writer of a text can know.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Prompt:
    """Holds a prompt: the fields are those of `Question`."""

    text: str
    stable_characters: int
    tag: str


def prompt(template: str, data: Mapping[str, str], texts: Mapping[str, str] | None = None) -> Prompt:
    r"""Returns the template of this name with each text in its block; `texts` as in `fill`.

    Raises:
        KeyError: the template contains a placeholder for which `data` has no text.

    >>> filled = fill("About [[tag]].\n\n[[session]]\n[[data answer]]", {"answer": "[[tag]] {}"})
    >>> print(filled.text)
    About a02b5c60daddc009.
    <BLANKLINE>
    <answer a02b5c60daddc009>
    [[tag]] {}
    </answer a02b5c60daddc009>
    >>> filled.text[: filled.stable_characters]
    'About a02b5c60daddc009.\n\n'
    """
    return fill(template_text(template), data, texts)


def fill(text: str, data: Mapping[str, str], texts: Mapping[str, str] | None = None) -> Prompt:
    """Returns a template, given as text instead of by name, with each text of `data` in its block.

    Args:
        text: The template.
        data: Texts of users and agents, by block.
        texts: Texts of the config, by placeholder `[[text NAME]]`. `{NAME}` in them becomes the block of this name, and
            nothing else in them is expanded.

    >>> filled = fill("[[text rule]]", {"answer": "{answer} [[tag]]"}, {"rule": "Polite? {answer} {1} [[tag]]"})
    >>> print(filled.text)
    Polite? <answer a02b5c60daddc009>
    {answer} [[tag]]
    </answer a02b5c60daddc009> {1} [[tag]]
    """
    plain = {name: value.encode("utf-8", "replace").decode() for name, value in data.items()}
    stated = {name: value.encode("utf-8", "replace").decode() for name, value in (texts or {}).items()}
    tag = tag_of([*plain.values(), *stated.values()])

    def block(name: str) -> str:
        return f"<{name} {tag}>\n{plain[name]}\n</{name} {tag}>"

    def named(found: re.Match[str]) -> str:
        return block(found["name"]) if found["name"] in plain else found[0]

    def replacement(found: re.Match[str]) -> str:
        if found["text"] is not None:
            return _BRACES.sub(named, stated[found["text"]])
        return tag if found["name"] is None else block(found["name"])

    given = {**plain, **stated}
    chosen = _OPTIONAL.sub(lambda found: found["lines"] if given.get(found["name"]) else "", text)
    stable, boundary, session = chosen.partition(SESSION)
    filled = _PLACEHOLDER.sub(replacement, stable)
    return Prompt(filled + _PLACEHOLDER.sub(replacement, session), len(filled) if boundary else 0, tag)


SESSION = "[[session]]\n"
"""The line of a template from which on a prompt depends on the session."""
_OPTIONAL = re.compile(r"\[\[if (?P<name>\w+)\]\]\n(?P<lines>.*?)\[\[end\]\]\n", re.DOTALL)
_PLACEHOLDER = re.compile(r"\[\[(?:tag|data (?P<name>\w+)|text (?P<text>\w+))\]\]")
_BRACES = re.compile(r"\{(?P<name>\w+)\}")


def tag_of(texts: Iterable[str]) -> str:
    """Returns the first public tag, in hexadecimal digits, that occurs in none of the texts.

    >>> tag_of([]), tag_of(["a02b5c60daddc009"])
    ('a02b5c60daddc009', 'db38d4c32a732c38')
    """
    listed = list(texts)
    number = 0
    while True:
        tag = hashlib.sha256(f"tag {number}".encode()).hexdigest()[:16]
        if not any(tag in text for text in listed):
            return tag
        number += 1


@cache
def template_text(name: str) -> str:
    """Returns the template of this name with its parts in it."""
    text = (files(__package__) / "prompts" / f"{name}.txt").read_text("utf-8")
    return _PART.sub(lambda found: template_text(f"part.{found['name']}").rstrip(), text)


_PART = re.compile(r"\[\[part (?P<name>\w+)\]\]")
