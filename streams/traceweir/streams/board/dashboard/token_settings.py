"""Reads who may ask the dashboard: the tokens of the settings, and the file with those of clients that have a name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast, get_args

import orjson

from traceweir.schemas.labels import MAX_NAME_CHARS
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.access import BUILT_IN_NAMES, KnownClient, Right, Tokens, as_read, digest_of

_FILE = "TRACEWEIR_DASHBOARD_TOKENS_FILE"
_KEYS = {"name", "right", "sha256"}
_DIGEST = re.compile(r"[0-9a-f]{64}")


def tokens_of(settings: Settings) -> Tokens:
    """Returns the tokens of the settings.

    Raises:
        InvalidSettingsError: two are the same, so that it is not said which right the token has; or the file cannot be used.
    """
    given = {
        "TRACEWEIR_DASHBOARD_TOKEN": settings.dashboard_token,
        "TRACEWEIR_DASHBOARD_LABEL_TOKEN": settings.dashboard_label_token,
        "TRACEWEIR_DASHBOARD_READ_TOKEN": settings.dashboard_read_token,
        "TRACEWEIR_DASHBOARD_FEEDBACK_TOKEN": settings.dashboard_feedback_token,
    }
    texts = {name: token.get_secret_value() for name, token in given.items() if token is not None}
    if len(set(texts.values())) < len(texts):
        names = [name for name, text in texts.items() if list(texts.values()).count(text) > 1]
        raise InvalidSettingsError(f"{' and '.join(names)} are the same token: give each right a token of its own")
    named = read_named_tokens(settings.dashboard_tokens_file) if settings.dashboard_tokens_file is not None else ()
    for name, text in texts.items():
        for client in named:
            if client.digest == digest_of(text):
                raise InvalidSettingsError(
                    f"{name} and that of {client.name!r} in {_FILE} are the same token: make another one for the name"
                )
    return Tokens(*(texts.get(name) for name in given), named=named)


def read_named_tokens(file: Path) -> tuple[KnownClient, ...]:
    """Returns the clients of a file: a JSON object a line, with exactly the texts `name`, `right` and `sha256`.

    Raises:
        InvalidSettingsError: the file cannot be read, has no client, or has a line that cannot be used. The message names
            the line and the rule, and no value: where a digest belongs, somebody may have written the token.
    """
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise InvalidSettingsError(
            f"{_FILE}: {file} cannot be read ({error.strerror or error}): correct the path or its rights"
        ) from None
    clients: dict[int, KnownClient] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            client = _client_of(line)
            _check_unlike(client, clients)
        except ValueError as error:
            # The cause has the text of the line.
            raise InvalidSettingsError(f"{_FILE}: {file}, line {number}: {error}") from None
        clients[number] = client
    if not clients:
        raise InvalidSettingsError(f"{_FILE}: {file} has no token: add a line, or unset the variable")
    return tuple(clients.values())


def _client_of(line: bytes) -> KnownClient:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict) or document.keys() != _KEYS or not all(map(_is_text, document.values())):
        raise ValueError('write a JSON object with exactly the texts "name", "right" and "sha256"')
    name = document["name"]
    right = document["right"]
    digest = document["sha256"]
    if not 1 <= len(name) <= MAX_NAME_CHARS:
        raise ValueError(f"name: a name has from 1 to {MAX_NAME_CHARS} characters")
    if not name.isprintable() or name != name.strip():
        raise ValueError("name: a name has visible characters only, and no space at its ends")
    if as_read(name) in map(as_read, BUILT_IN_NAMES):
        raise ValueError("name: the dashboard gives this name to clients without one: choose another name")
    if right not in get_args(Right):
        raise ValueError(f"right: this is none of {', '.join(get_args(Right))}")
    if not _DIGEST.fullmatch(digest):
        raise ValueError("sha256: write the SHA-256 of the token as 64 small hexadecimal digits, and never the token")
    return KnownClient(name, cast(Right, right), digest)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _check_unlike(client: KnownClient, others: dict[int, KnownClient]) -> None:
    for number, other in others.items():
        if as_read(client.name) == as_read(other.name):
            raise ValueError(
                f"name: line {number} has the same name (case and spaces do not count): give each client its own name"
            )
        if client.digest == other.digest:
            raise ValueError(f"sha256: line {number} has the same token: give each client a token of its own")
