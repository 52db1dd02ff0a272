"""Removes known secrets from texts of others, also where a text encodes them or has only a part of them."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from traceweir.scorers.redaction.encodings import View

HIDDEN = "[secret]"
SHORTEST = 6
"""Minimum number of characters of a secret. Shorter keys, such as `x` for local servers, would match inside words."""
FRAGMENT = 12
"""Number of successive characters of a secret that are hidden wherever they stand."""
_SEARCHED = 16_384
"""Characters of a text of any size that are searched."""
_TAIL = 4_096
"""Characters at the end of a cut text that can be the beginning of a secret."""
_PART = 6
"""Each `FRAGMENT` contains a part of so many characters that begins at a multiple of `FRAGMENT - _PART + 1`."""
_MOST_ENCODINGS = 3
"""How often a text is decoded: a proxy encodes what was encoded before."""
_LIKE_A_TOKEN = re.compile(r"[A-Za-z0-9._~+/=:@?&%-]{12,}")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[\"\\/]|&#?[0-9A-Za-z]{2,8};")


class KnownSecrets:
    r"""Hides secrets in texts.

    >>> secrets = KnownSecrets(["hunter2-hunter2"], fragments=["sk-0123456789abcdef"])
    >>> secrets.hide("key hunter2-hunter2, also hunter2%2Dhunter2 and ...456789\\u0061bcdef")
    'key [secret], also [secret] and ...[secret]'

    Args:
        known: Secrets that are hidden as a whole.
        fragments: Secrets of which also each part of `FRAGMENT` characters is hidden.
    """

    def __init__(self, known: Iterable[str], *, fragments: Iterable[str] = ()) -> None:
        parts = [secret for secret in fragments if _LIKE_A_TOKEN.fullmatch(secret)]
        found = {form for secret in (*known, *parts) if len(secret) >= SHORTEST for form in _forms(secret)}
        ordered = sorted(found, key=len, reverse=True)
        self._whole = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._windows = frozenset(
            form[start : start + FRAGMENT]
            for secret in parts
            for form in (secret, *_base64_forms(secret))
            for start in range(len(form) - FRAGMENT + 1)
        )
        self._parts = frozenset(
            window[start : start + _PART] for window in self._windows for start in range(FRAGMENT - _PART + 1)
        )

    def hide(self, text: str) -> str:
        """Returns the text with `HIDDEN` in place of each secret."""
        decoded = text
        levels: list[View] = []
        spans = [*self._spans(text)]
        for _ in range(_MOST_ENCODINGS):
            if _ENCODED.search(decoded) is None:
                break
            levels.append(View(decoded, ((*each.span(), _plain(each[0])) for each in _ENCODED.finditer(decoded))))
            decoded = levels[-1].text
            for start, end in self._spans(decoded):
                for level in reversed(levels):
                    start, end = level.source(start, end)
                spans.append((start, end))
        return _without(text, sorted(spans)) if spans else text

    def hide_in_beginning(self, text: str) -> str:
        """Returns the beginning of a text of any size with `HIDDEN` in place of each secret."""
        hidden = self.hide(text[:_SEARCHED])
        return hidden if len(text) <= _SEARCHED else hidden[:-_TAIL] or HIDDEN

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._whole is not None:
            yield from (match.span() for match in self._whole.finditer(text))
        if self._windows:
            for run in _LIKE_A_TOKEN.finditer(text):
                yield from self._spans_of_run(text, *run.span())

    def _spans_of_run(self, text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yields the windows between two positions: around each part in the grid of the run that is a part of a window."""
        tested = begin
        for at in range(begin, stop - _PART + 1, FRAGMENT - _PART + 1):
            if text[at : at + _PART] not in self._parts:
                continue
            first = max(tested, at + _PART - FRAGMENT)
            last = min(at, stop - FRAGMENT)
            for start in range(first, last + 1):
                if text[start : start + FRAGMENT] in self._windows:
                    yield start, start + FRAGMENT
            tested = max(tested, last + 1)


def secrets_of_url(url: str) -> list[str]:
    """Returns the parts of an address that can be secret: all but scheme, host and port.

    >>> secrets_of_url("https://me:pass@hooks.example:8443/services/T01?token=abc")
    ['https://me:pass@hooks.example:8443/services/T01?token=abc', 'me:pass', '/services/T01', 'token=abc', 'services', 'T01', 'abc', 'pass']
    """
    parts = urlsplit(url)
    user, _, _ = parts.netloc.rpartition("@")
    whole = [url, user, parts.path, parts.query, parts.fragment]
    inner = [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query)), parts.password or ""]
    found = [each for each in (*whole, *inner) if len(each.strip("/")) > 2]
    return list(dict.fromkeys([*found, *map(unquote, found)]))


def _forms(secret: str) -> set[str]:
    """Returns a secret as texts contain it."""
    encoded = base64.b64encode(secret.encode()).decode()
    return {secret, json.dumps(secret)[1:-1], quote(secret, safe=""), encoded, encoded.rstrip("=")}


def _base64_forms(secret: str) -> Iterator[str]:
    """Yields what the base64 of a longer text that contains the secret contains, wherever the secret begins in it."""
    raw = secret.encode()
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + raw).decode()
        # The first and the last characters depend on the bytes around the secret.
        yield encoded[(0, 2, 3)[lead] : (len(raw) + lead) * 8 // 6]


def _plain(escape: str) -> str:
    if escape[0] == "%":
        return chr(int(escape.removeprefix("%"), 16))
    if escape[0] == "&":
        return html.unescape(escape)
    return chr(int(escape.removeprefix("\\u"), 16)) if escape[1] == "u" else escape[1]


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept: list[str] = []
    at = hidden_to = 0
    for start, end in spans:
        if start > hidden_to or not hidden_to:
            kept += [text[at:start], HIDDEN]
        at = hidden_to = max(hidden_to, end)
    return "".join([*kept, text[at:]])
