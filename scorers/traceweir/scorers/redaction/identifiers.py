"""Finds identifiers of persons: e-mail addresses, IP addresses, home directories, cards, accounts and registered numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address

import re2

from traceweir.scorers.redaction.checksums import iban_length, is_card, is_resident_number, is_social_security_number
from traceweir.scorers.redaction.hits import Hit
from traceweir.scorers.redaction.phone_numbers import phone_numbers

_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_TO_END_OF_WORD = r"[^\s'\"`,;)}\]]*"
_NUMBER = re2.compile(rb"[0-9](?:[ ().-]{0,4}[0-9]){6}")
"""Every telephone number, card and registered number contains this; the search costs a hundredth of theirs."""
_AROUND = 40
"""Characters around a number that decide what the number is: a UUID has 36."""
_DOTTED = re2.compile(rb"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
_COLONS = re2.compile(rb"[0-9A-Fa-f]{3,4}:[0-9A-Fa-f:]*:")
_IBAN_START = re2.compile(rb"[A-Z]{2}[0-9]{2}[ -]?[A-Z0-9]{4}")

_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]+\.([A-Za-z]{2,})(?![A-Za-z0-9-])", re.ASCII)
_FILE_ENDINGS = frozenset(
    ["png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "js", "ts", "css", "md", "py", "git"]
)
_IP_V4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\.?\d)", re.ASCII)
_NO_IP_BEFORE = re.compile(
    r"(?:(?:\b|__)(?:sections?|sec|chapters?|chap|versions?|ver|v|releases?|clauses?|paragraphs?|articles?|revisions?|rev|builds?|firmware"
    r"|driver|figures?|fig|tables?|appendix|oid|requirements?|annex|ios|macos|android|windows|kernel|java|python|update|patch|sdk|chrome|firefox)(?:__)?[.:=\s'\"]{0,6}|§\s{0,3}"
    r"|(?:절|장|버전|항|조|제|판)\s{0,3}|[=<>~^]=\s{0,2}|\b\d+(?:\.\d+){1,2},? (?:and|or|to) |[A-Za-z]/|[A-Za-z]-)$",
    re.IGNORECASE,
)
_NO_IP_AFTER = re.compile(r"\s(?:release|version|update|build|patch)|/\d|-\d*[a-z]", re.IGNORECASE)
_NO_PERSON = re.compile(r"127\.|0\.0\.0\.0$|255\.255\.|1\.1\.1\.1$|8\.8\.[48]\.[48]$")
"""Loopback, unspecified, netmasks, public resolvers: addresses of everybody."""
_IP_V6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,8}[0-9A-Fa-f]{0,4}(?![\w:])", re.ASCII)
_HOME = re.compile(
    rf"/(?:home|Users)/([^\s/'\"`,;)}}\]\[]+){_TO_END_OF_WORD}|[A-Za-z]:\\+Users\\+([^\s\\'\"`,;)}}\]\[]+){_TO_END_OF_WORD}",
    re.ASCII,
)
_BEFORE_PATH = 200
_ADDRESS_BEFORE = re.compile(
    r"(?:(?:https?|wss?)://(?!localhost\b|127\.|0\.0\.0\.0|\[::1\])[^\s'\"`<>/?#]{1,120}(?:/[^\s'\"`<>?#=]*)?"
    r"|(?<![\w./~-])(?:[a-z0-9-]{1,63}\.)+(?:com|org|net|io|dev|ai|app|co|kr|jp|de|uk|eu|edu|gov)(?::\d{1,5})?(?:/[^\s'\"`<>?#=]*)?"
    r"|\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (?:/[^\s'\"`<>?#=]*)?"
    r"|\b(?:href|src|action)=['\"]|<[^<>]{1,100}\s(?:href|src|action)=)\Z",
    re.ASCII | re.IGNORECASE,
)
_SHARED_ACCOUNTS = frozenset(
    [
        "user",
        "username",
        "<username>",
        "runner",
        "ubuntu",
        "app",
        "node",
        "vscode",
        "jovyan",
        "ec2-user",
        "shared",
        "public",
        "default",
        "administrator",
        "<user>",
        "$user",
        "{user}",
        "...",
    ]
)
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){11,18}(?!-?\w|\.\d)", re.ASCII)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d\d(?=[ -]?[A-Z0-9]{4})", re.ASCII)
_RESIDENT = re.compile(r"(?<![\d-])\d{6}(?:-| - )?[1-8]\d{6}(?![\d-])", re.ASCII)
_SOCIAL_SECURITY = re.compile(r"(?<![\d-])\d{3}([- ])\d{2}\1\d{4}(?![\d-])", re.ASCII)


def identifiers(text: str, ascii_text: bytes, rank: int) -> Iterator[Hit]:
    """Yields the identifiers of a text. Hits of different kinds can overlap.

    Args:
        text: The text.
        ascii_text: The text with every other character replaced by one byte, so that positions agree.
        rank: The rank of e-mail addresses; other kinds have the ranks after it.
    """
    if b"@" in ascii_text:
        for match in _EMAIL.finditer(text):
            if match[1].lower() not in _FILE_ENDINGS and not match[0].startswith("git@"):
                yield Hit(*match.span(), rank, "email")
    windows = _number_windows(ascii_text)
    if windows:
        yield from _numbers(text, windows, rank + 1)
    if b"." in ascii_text and _DOTTED.search(ascii_text) is not None:
        yield from _ip_v4(text, rank + 6)
    if b":" in ascii_text and (b"::" in ascii_text or _COLONS.search(ascii_text) is not None):
        yield from _ip_v6(text, rank + 6)
    if "/home/" in text or "Users" in text:
        for match in _HOME.finditer(text):
            account = (match[1] or match[2]).lower()
            is_path = match[0][0] != "/" or not _is_in_address(text, match.start())
            if account not in _SHARED_ACCOUNTS and not account.isdigit() and is_path:
                yield Hit(*match.span(), rank + 7, "filepath")
    if _IBAN_START.search(ascii_text) is not None:
        for match in _IBAN.finditer(text):
            length = iban_length(text[match.start() : match.start() + 70])
            if length and not text[match.start() + length : match.start() + length + 1].isalnum():
                yield Hit(match.start(), match.start() + length, rank + 1, "iban")


def _is_in_address(text: str, start: int) -> bool:
    """Returns whether a path is that of an address on the web, where `/home` is a page. A server of one's own has files."""
    return _ADDRESS_BEFORE.search(text[max(0, start - _BEFORE_PATH) : start]) is not None


def _number_windows(ascii_text: bytes) -> list[tuple[int, int]]:
    """Returns the parts of the text that can contain a number of seven digits or more, with what stands around it."""
    windows: list[tuple[int, int]] = []
    for match in _NUMBER.finditer(ascii_text):
        start = match.start() - _AROUND
        end = match.end() + _AROUND
        if windows and start <= windows[-1][1]:
            windows[-1] = windows[-1][0], end
        else:
            windows.append((max(0, start), end))
    return windows


def _numbers(text: str, windows: list[tuple[int, int]], rank: int) -> Iterator[Hit]:
    for start, end in windows:
        for match in _CARD.finditer(text, start, end):
            if is_card(match[0]):
                yield Hit(*match.span(), rank, "card")
        for match in _RESIDENT.finditer(text, start, end):
            if is_resident_number(match[0]):
                yield Hit(*match.span(), rank + 1, "resident_number")
        for match in _SOCIAL_SECURITY.finditer(text, start, end):
            if is_social_security_number(match[0]):
                yield Hit(*match.span(), rank + 2, "ssn")
    yield from phone_numbers(text, windows, rank + 3)


def _ip_v4(text: str, rank: int) -> Iterator[Hit]:
    for match in _IP_V4.finditer(text):
        before = text[max(0, match.start() - 16) : match.start()]
        is_number = _NO_IP_BEFORE.search(before) or _NO_IP_AFTER.match(text, match.end())
        if not is_number and not _NO_PERSON.match(match[0]):
            yield Hit(*match.span(), rank, "ip")


def _ip_v6(text: str, rank: int) -> Iterator[Hit]:
    for match in _IP_V6.finditer(text):
        address = match[0]
        groups = [group for group in address.split(":") if group]
        if not any(len(group) >= 3 for group in groups) or not any(map(str.isdigit, address)):
            continue
        try:
            parsed = IPv6Address(address)
        except ValueError:
            continue
        if not parsed.is_loopback and not parsed.is_unspecified:
            yield Hit(*match.span(), rank, "ip")
