"""Decodes what hides a secret, and maps positions of the decoded text back to the original.

Four things hide a secret: characters that nobody sees and other forms of letters (`plain_text`), escapes
(percent-encoding, JSON, HTML), line breaks within a secret, and base64 or hexadecimal runs. A decoded text is searched like
any other, and a hit removes the part of the original that it came from.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote

import re2

from traceweir.scorers.redaction.entropy import is_wordy

_ESCAPE = re.compile(
    r"%[0-7][0-9A-Fa-f]|(?:%[89A-Fa-f][0-9A-Fa-f])+|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[\"'`\\/bfnrt]"
    r"|&(?:quot|apos|amp|lt|gt|#[0-9]{1,5}|#x[0-9A-Fa-f]{1,4});"
)
_HAS_ESCAPE = re2.compile(rb"%[0-9A-Fa-f]{2}|\\[ux\"'`\\/bfnrt]|&(?:quot|apos|amp|lt|gt|#x?[0-9A-Fa-f]{1,5});")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " "}
_JOINED_STRINGS = r"['\"][ \t]*\+?[ \t]*\\?\r?\n[ \t]*[+.]?[ \t]*['\"]"
_PLAIN_BREAK = r"[ \t]*[\\=]?\r?\n[ \t]*(?:[>#|*]{1,3}[ \t])?"
_NEXT_NAME = (
    r"(?:[A-Za-z_][\w.-]{0,24}|[A-Za-z]+(?:_[A-Za-z0-9]+){1,8})[ \t]{0,4}(?:[:=][ \t]|=[^=\s]|:[\"'{\[]|[:=]\r?\n)"
)
_LINE_BREAK = re.compile(
    rf"(?<=[^\s.,;:!?)}}\]>])(?:{_JOINED_STRINGS}|{_PLAIN_BREAK})(?=[A-Za-z0-9+/=_.~%!#?*@$&:-])(?!{_NEXT_NAME})"
)
_RUN = re2.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_TEXT_BYTES = bytes(byte for byte in range(256) if byte >= 32 or byte in b"\t\n\r\x1b")
_HEX_DIGITS = b"0123456789abcdefABCDEF"
_MIN_TEXT = 12
_LEAD = 32
_BASE64_TAIL = re.compile("[-_/]")

Replacement = tuple[int, int, str]
"""The start and the end of a part of a text, and what replaces it."""


class View:
    """A decoded text, with the way back to the text that it came from."""

    def __init__(
        self,
        text: str,
        replacements: Iterable[Replacement],
        within: Callable[[str], Iterable[Replacement]] | None = None,
    ) -> None:
        """Replaces parts of a text.

        Args:
            text: The original text.
            replacements: The parts, in their order.
            within: Returns the smaller replacements of which one replacement consists, for its part of the text. It is called
                only when a position in this part is asked for. None: every character of a replacement comes from its whole
                part.
        """
        self._original = text
        self._within = within
        self._views: dict[int, View] = {}
        self._starts = [0]
        self._sources = [0]
        self._kept = [True]
        parts: list[str] = []
        length = end = 0
        for start, stop, decoded in replacements:
            parts += [text[end:start], decoded]
            length += start - end
            self._starts += [length, length + len(decoded)]
            self._sources += [start, stop]
            self._kept += [False, True]
            length += len(decoded)
            end = stop
        self.text = "".join([*parts, text[end:]]) if parts else text
        self.changed = bool(parts)

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Returns the part of the original text that a part of the decoded text came from."""
        return self._source(start)[0], self._source(end - 1)[1]

    def _source(self, at: int) -> tuple[int, int]:
        piece = bisect_right(self._starts, at) - 1
        begin = self._sources[piece]
        offset = at - self._starts[piece]
        if self._kept[piece]:
            return begin + offset, begin + offset + 1
        stop = self._sources[piece + 1]
        if self._within is None:
            return begin, stop
        if piece not in self._views:
            part = self._original[begin:stop]
            self._views[piece] = View(part, self._within(part))
        first, last = self._views[piece].source(offset, offset + 1)
        return begin + first, begin + last

    def joints(self) -> list[int]:
        """Returns the positions in the decoded text at which something was removed or decoded."""
        return [start for start, kept in zip(self._starts, self._kept, strict=True) if not kept]


def unescaped(text: str, ascii_text: bytes) -> View | None:
    """Returns the text with one level of escapes decoded, or None if it has no escapes.

    >>> view = unescaped('{%22a%22:1}', b'{%22a%22:1}')
    >>> view.text, view.source(1, 4)
    ('{"a":1}', (1, 8))
    """
    if b"%" not in ascii_text and b"\\" not in ascii_text and b"&" not in ascii_text:
        return None
    if _HAS_ESCAPE.search(ascii_text) is None:
        return None
    return View(text, ((*match.span(), _decoded_escape(match)) for match in _ESCAPE.finditer(text)))


def unwrapped(text: str) -> View | None:
    """Returns the text with the line breaks removed that can stand within a secret, or None if it has no such line break.

    >>> view = unwrapped("token ghp_ab12\\n    cd34 is new\\nand works")
    >>> view.text
    'token ghp_ab12cd34 is new\\nand works'
    """
    if "\n" not in text:
        return None
    breaks = (match for match in _LINE_BREAK.finditer(text) if _is_within_secret(match))
    view = View(text, ((*match.span(), "") for match in breaks))
    return view if view.changed else None


def decoded_runs(ascii_text: bytes) -> Iterator[tuple[int, int, str]]:
    """Yields the start, the end and the decoded text of every base64 or hexadecimal run that holds a text."""
    for match in _RUN.finditer(ascii_text):
        start, end = match.span()
        run = ascii_text[start:end]
        for text in _texts_of(run):
            yield start, end, text


def _texts_of(run: bytes) -> Iterator[str]:
    if not run.translate(None, _HEX_DIGITS):
        text = _as_text(binascii.unhexlify(run)) if len(run) % 2 == 0 and len(run) >= 2 * _MIN_TEXT else None
        if text:
            yield text
        return
    if run.islower() or run.isupper():
        # base64 of a text has both cases.
        return
    standard = run.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    # A run can begin with the end of a path or a name: `data/eyJ...`, `prefix-eyJ...`.
    for offset in [0, *(match.end() for match in _BASE64_TAIL.finditer(run[: 2 * _LEAD].decode()))][:5]:
        rest = standard[offset:]
        if len(rest) < 16 or not _looks_like_text(rest[:_LEAD]):
            continue
        text = _as_text(_base64_bytes(rest))
        if text:
            yield text
            return


def _base64_bytes(run: bytes) -> bytes:
    usable = run[: len(run) - 1] if len(run) % 4 == 1 else run
    return base64.b64decode(usable + b"=" * (-len(usable) % 4))


def _looks_like_text(lead: bytes) -> bool:
    decoded = base64.b64decode(lead[: len(lead) // 4 * 4])
    return not decoded[::2].translate(None, _TEXT_BYTES)


def _as_text(decoded: bytes) -> str | None:
    """Returns the text of decoded bytes, in UTF-8 or UTF-16, or None if they are none."""
    encoding = "utf-16-le" if len(decoded) >= 8 and not any(decoded[1:8:2]) else "utf-8"
    if encoding == "utf-8" and decoded.translate(None, _TEXT_BYTES):
        return None
    try:
        return decoded.decode(encoding)
    except UnicodeDecodeError:
        return None


def _decoded_escape(match: re.Match[str]) -> str:
    escape = match[0]
    if escape.startswith("%"):
        return unquote(escape, errors="replace")
    if escape.startswith("&"):
        return html.unescape(escape)
    if escape[1] in "ux":
        return chr(int(escape.lstrip("\\ux"), 16))
    return _SIMPLE.get(escape[1], escape[1])


def _is_within_secret(match: re.Match[str]) -> bool:
    """Returns whether a line break can stand within a secret: not if plain words stand on both sides of it."""
    text, (start, end) = match.string, match.span()
    before = re.split(r"\s", text[max(0, start - 40) : start])[-1]
    after = re.split(r"\s", text[end : end + 40], maxsplit=1)[0]
    return not (is_wordy(before) and is_wordy(after.rstrip(".,;:!?\"')")))
