"""Writes secrets in the forms in which agents and tools write them."""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

from tests.support.redaction.secret_kinds import KINDS, Secret, SecretKind

_PIECE = 6
"""Length in characters of the pieces of a secret that must not remain."""
_NEUTRAL_NAMES = ("value", "setting", "arg", "result", "data")


class Sample(NamedTuple):
    """A text with a secret."""

    kind: str
    form: str
    text: str
    pieces: tuple[str, ...]
    """Parts of the secret, as the text writes them. Redaction must remove all of them."""


def pieces_of(core: str) -> tuple[str, ...]:
    """Returns consecutive parts of a secret that are long enough to be recognised; a short secret is one part."""
    lines = [line for line in core.split("\n") if line]
    pieces = [line[start : start + _PIECE] for line in lines for start in range(0, len(line) - _PIECE + 1, _PIECE)]
    return tuple(pieces) or (core,)


def _name(rng: random.Random, kind: SecretKind) -> str:
    """Returns the name of the variable that holds the secret; often a neutral one if the secret has a form."""
    return rng.choice(_NEUTRAL_NAMES) if kind.has_form and rng.random() < 0.5 else kind.name


def _prose(rng: random.Random, kind: SecretKind, secret: Secret) -> tuple[str, str]:
    templates = [
        f"The {kind.label} is {secret.text} for now.",
        f"I used the {kind.label} {secret.text}, and the deployment went through.",
        f"{kind.label}: {secret.text}\nPlease keep it.",
    ]
    if kind.has_form:
        templates += [
            f"Then it printed {secret.text} and stopped.",
            f"값은 {secret.text} 입니다. 확인해 주세요.",
            f"({secret.text})",
        ]
    return rng.choice(templates), secret.core


def _assignment(rng: random.Random, kind: SecretKind, secret: Secret) -> tuple[str, str]:
    name = _name(rng, kind)
    template = rng.choice(["{} = {}", '{} = "{}"', "{}: {}", "{}='{}'", "[default]\nregion = eu-west-1\n{} = {}\n"])
    return template.format(name, secret.text), secret.core


def _json_member(rng: random.Random, kind: SecretKind, secret: Secret) -> tuple[str, str]:
    document = {"id": 7, _name(rng, kind): secret.text, "retries": 3}
    text = json.dumps(document, indent=rng.choice([None, 2]))
    return text, json.dumps(secret.core)[1:-1].replace("\\n", "\n")


def _escaped_twice(rng: random.Random, kind: SecretKind, secret: Secret) -> tuple[str, str]:
    inner = json.dumps({_name(rng, kind): secret.text, "n": 1})
    text = json.dumps({"body": json.dumps({"inner": inner})})
    return text, secret.core


def _base64(rng: random.Random, kind: SecretKind, secret: Secret) -> tuple[str, str]:
    plain = rng.choice(
        [
            f"{_name(rng, kind)}={secret.text}\n",
            json.dumps({_name(rng, kind): secret.text, "region": "eu-west-1"}),
            f"The {kind.label} is {secret.text} until Friday",
        ]
    )
    encode = rng.choice([base64.b64encode, base64.urlsafe_b64encode])
    encoded = encode(plain.encode()).decode()
    text = rng.choice(["data: {}", '{{"content": "{}"}}', "echo {} | base64 -d", "The file holds {} in full."])
    return text.format(encoded), encoded.rstrip("=")


def _percent(rng: random.Random, kind: SecretKind, secret: Secret) -> tuple[str, str]:
    name = _name(rng, kind)
    encoded = quote(secret.text, safe="")
    nested = quote(f"https://app.example.com/hook?{name}={secret.text}&n=1", safe="")
    url, core = rng.choice(
        [
            (f"https://api.example.com/v1/items?page=2&{name}={encoded}&limit=5", quote(secret.core, safe="")),
            (f"https://api.example.com/go?next={nested}", quote(secret.core, safe="")),
        ]
    )
    return rng.choice(["GET {} HTTP/1.1", "I opened {} again.", '"url": "{}"']).format(url), core


def _header_or_export(rng: random.Random, kind: SecretKind, secret: Secret) -> tuple[str, str]:
    name = _name(rng, kind)
    header = "-".join(part.capitalize() for part in name.split("_"))
    value = secret.text.replace("\n", "\\n")
    template = rng.choice(
        ["export {1}={2}", "{1}={2}", "-e {1}={2}", "{0}: {2}", "curl -H '{0}: {2}' https://x.example"]
    )
    return template.format(header, name.upper(), value), secret.core


def _wrapped(rng: random.Random, kind: SecretKind, secret: Secret) -> tuple[str, str]:
    """Breaks the secret over lines, as mail programs, terminals and pretty printers do."""
    line_break = rng.choice(["\n", "\n    ", "\\\n", "\r\n"])
    text = f"{kind.name} = {secret.text}" if rng.random() < 0.5 or not kind.has_form else secret.text
    if "\n" in secret.text:
        return f"See below.\n{text}\nThank you.", secret.core
    at = len(text) - len(secret.text)
    width = max(8, min(40, len(secret.text) // 2 + 1))
    chunks = [secret.text[start : start + width] for start in range(0, len(secret.text), width)]
    wrapped = text[:at] + line_break.join(chunks)
    core = secret.text.find(secret.core)
    # The core is cut where the text is cut, so that its pieces stand on one line each.
    cuts = [cut for cut in range(width, len(secret.text), width) if core < cut < core + len(secret.core)]
    edges = [core, *cuts, core + len(secret.core)]
    parts = "\n".join(secret.text[start:end] for start, end in itertools.pairwise(edges))
    return f"See below.\n{wrapped}\n\nThank you.", parts


FORMS: Mapping[str, Callable[[random.Random, SecretKind, Secret], tuple[str, str]]] = MappingProxyType(
    {
        "bare in prose": _prose,
        "key = value": _assignment,
        "JSON member": _json_member,
        "JSON escaped twice": _escaped_twice,
        "base64 of a text": _base64,
        "percent-encoded URL": _percent,
        "header or export line": _header_or_export,
        "wrapped over lines": _wrapped,
    }
)


def samples(seed: int, per_cell: int = 3) -> Iterator[Sample]:
    """Yields texts with a secret: `per_cell` texts of every kind in every form."""
    for kind in KINDS:
        for form, write in FORMS.items():
            for number in range(per_cell):
                rng = random.Random(f"{seed}/{kind.name}/{form}/{number}")
                text, core = write(rng, kind, kind.draw(rng))
                yield Sample(kind.name, form, text, pieces_of(core))
