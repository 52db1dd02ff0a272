"""Finds secrets that the name before them reveals: `password = hunter2`, `"apiKey": "..."`, `Authorization: ...`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import re2

from traceweir.scorers.redaction.entropy import has_digit
from traceweir.scorers.redaction.hits import Hit
from traceweir.scorers.redaction.secret_names import FOREIGN_NAMES, is_made_up, is_secret_value, secret_role

KEYWORDS = (
    "passw", "pwd", "passphrase", "passcode", "pass", "secret", "token", "key", "auth", "cookie", "dsn", "_ur", "databaseur",
    "mongour", "credential", "creds", "conn", "jwt", "cvc", "cvv", "otp", "pin", "pw", "bearer", "session", "csrf", "xsrf",
    "sessid", "mdp", "kennwort", "senha", "contrasena", "haslo", "heslo", "jelszo", "losenord", "salasana", "wachtwoord",
    "adgangskode", "katasandi", "matkhau", "motdep", "parola", "sifre",
)  # fmt: skip
"""Lower-case texts, one of which is part of every ASCII name that `secret_role` knows."""
_NAME = "|".join(KEYWORDS)
_ASSIGNMENT = re2.compile(
    rf"(?i)([<]?[\w.$-]{{0,48}}(?:{_NAME})[\w-]{{0,24}})(?:\\{{0,7}}['\"`])?\]?"
    r"(,?\s{0,20}(?:- )?\\{0,7}['\"]?value\\{0,7}['\"]?[ ]{0,3}[:=]|[ \t]{0,8}(?::=|=>|==|=|:|>|,|\|))[ \t]{0,8}"
    r"(?:\r?\n[ \t]{1,16})?".encode()
)
_FOREIGN_TEXTS = (*FOREIGN_NAMES.split("|"), "토큰", "トークン", "令牌")
_FOREIGN_STARTS = "".join({name[0] for name in _FOREIGN_TEXTS})
"""Tried before the names, which costs a sixth of trying each name at each character."""
_FOREIGN_ASSIGNMENT = re.compile(
    rf"(?=[{_FOREIGN_STARTS}])({FOREIGN_NAMES})[0-9]{{0,3}}(?:\\{{0,7}}['\"`])?[ \t]{{0,8}}([=:])[ \t]{{0,8}}",
    re.IGNORECASE,
)
_OPTION = re2.compile(rf"(?i)[ ](--[a-z-]{{0,24}}(?:{_NAME})[a-z-]{{0,16}})[ ]".encode())
_SPOKEN = re2.compile(
    rb"(?i)\b(password|passwd|passphrase|passcode|secret|token|api[ _-]?key|access key|secret key|credentials?)"
    rb"(?:(?: (?:for|of|to)(?: [\w.@-]{1,40}){1,5})? (?:is|was|are|will be|to)(?: now)?:?)? ['\"`(]?([^\s'\"`]{6,})"
)
_FOREIGN_SPOKEN = re.compile(
    rf"(?=[{_FOREIGN_STARTS}])(?:{'|'.join(_FOREIGN_TEXTS)})(?:는|은|가|이|를|을|は|が|を|是|为|為| —| es| to| är)? ?"
    r"['\"`]?((?![:=])[!-~]{5,200})",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"[bfrBFR]?(\\{0,7}(?:'|\"|`))")
_BARE = re.compile(r"[^\s'\"`,;)}\]]+")
_BARE_IN_QUERY = re.compile(r"[^\s'\"`,;)}\]&#]+")
_BARE_IN_TAG = re.compile(r"[^\s'\"`,;)}\]<]+")
_SCHEME = re.compile(
    r"(?:Basic|Bearer|Token|ApiKey|Api-Key|Digest|Negotiate|AWS4-HMAC-SHA256|Key|SSWS|Bot)\s+", re.IGNORECASE
)
_LINE_REST = re.compile(r"[^\n\"'`]+")
_NO_SECRET_BEFORE = re.compile(r"(?:unexpected|invalid|near|unknown|expected|illegal) $", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_]+(?:\d{1,4}[A-Za-z_]*)?")
_MAX_JUDGED = 256
"""A value without quotes is judged by its first 256 characters, so that n names before one long value cost n times that."""
_MAX_NAMES_IN_VALUE = 8
"""How many names within a rejected value are judged with the text after them."""
_MAX_QUOTED = 20_000


def assigned_secrets(text: str, ascii_text: bytes, rank: int) -> Iterator[Hit]:
    """Yields the values of names that hold a secret.

    Args:
        text: The text.
        ascii_text: The text with every other character replaced by one byte, so that positions agree.
        rank: The rank of the hits.
    """
    end = 0
    for match in _ASSIGNMENT.finditer(ascii_text):
        start, stop = match.span()
        if start < end:
            continue
        found = _value(text, match.group(1).decode(), match.group(2).decode(), start, stop)
        if found is not None:
            end = found[1]
            yield Hit(*found, rank, "password")
    end = 0
    for match in _OPTION.finditer(ascii_text):
        if match.start() < end:
            continue
        found = _value(text, match.group(1).decode(), "=", match.start(), match.end())
        if found is not None:
            end = found[1]
            yield Hit(*found, rank, "password")


def foreign_secrets(text: str, rank: int) -> Iterator[Hit]:
    """Yields the values of names of passwords that are not written in ASCII."""
    lower = text.lower()
    if not any(name in lower for name in _FOREIGN_TEXTS):
        return
    end = rejected_end = names = 0
    for match in _FOREIGN_ASSIGNMENT.finditer(text):
        if match.start() < end:
            continue
        # Each name in one long value without a space is judged by the same characters: the work is bounded.
        names = names + 1 if match.start() < rejected_end else 0
        if names > _MAX_NAMES_IN_VALUE:
            continue
        found = _value(text, match[1], match[2], match.start(), match.end())
        if found is not None:
            end = found[1]
            yield Hit(*found, rank, "password")
        elif not names and (rejected := _BARE.match(text, match.end(), match.end() + _MAX_JUDGED)):
            rejected_end = rejected.end()
    for match in _FOREIGN_SPOKEN.finditer(text):
        value = match[1].rstrip(".,;:!?)")
        if is_made_up(value):
            yield Hit(match.start(1), match.start(1) + len(value), rank, "password")


def spoken_secrets(ascii_text: bytes, rank: int) -> Iterator[Hit]:
    """Yields secrets in sentences: `the password is hunter2`."""
    for match in _SPOKEN.finditer(ascii_text):
        if _NO_SECRET_BEFORE.search(ascii_text[max(0, match.start() - 12) : match.start()].decode()):
            continue
        start, end = match.span(2)
        value = ascii_text[start:end].decode().rstrip(".,;:)]}>?")
        if is_made_up(value):
            yield Hit(start, start + len(value), rank, "password")


def _value(text: str, name: str, separator: str, start: int, stop: int) -> tuple[int, int] | None:
    """Returns the position of the secret value that begins at `stop`, or None if the value is no secret."""
    role = secret_role(name)
    is_tag = name.startswith("<")
    separator = separator.strip()
    if not role or separator == "==" or (separator == ">") != is_tag:
        return None
    if name == "PASS" and separator in (":", "|"):
        # The result of a test.
        return None
    quote = _QUOTE.match(text, stop)
    if quote is not None:
        return _quoted_value(text, role, name, separator, start, quote)
    if separator == "," or (separator == "|" and not has_digit(text[stop : stop + 40])):
        return None
    begin = stop + _scheme_length(text, stop, len(text), name)
    is_query = text[start - 1 : start] in ("?", "&", "=")
    pattern = _LINE_REST if role == "cookie" else _BARE_IN_QUERY if is_query else _BARE_IN_TAG if is_tag else _BARE
    match = pattern.match(text, begin, begin + _MAX_JUDGED)
    if match is None or text.startswith(("//", ":"), begin):
        return None
    value = match[0]
    if is_tag and not text.startswith("</", match.end()):
        return None
    if value.endswith(":") and "\n" in text[start:stop]:
        # A nested name.
        return None
    after = text[match.end() : match.end() + 1]
    tight = separator == "=" and text[stop - 1] == "=" and after not in (")", ",")
    if not is_secret_value(role, value, quoted=False, tight=tight):
        return None
    whole = pattern.match(text, begin)
    return begin, whole.end() if whole is not None else match.end()


def _quoted_value(
    text: str, role: str, name: str, separator: str, start: int, quote: re.Match[str]
) -> tuple[int, int] | None:
    opened = text[start - 1 : start]
    if opened == quote[1] and text[start + len(name) : start + len(name) + 1] != opened:
        # `"Password: "`: the quote closes the text in which the name stands.
        return None
    begin = quote.end()
    end = _closing(text, quote.end(), quote[1])
    begin += _scheme_length(text, begin, end, name)
    value = text[begin:end]
    is_list = separator == "," and (
        opened not in ("'", '"') or "\n" in text[start:begin] or _IDENTIFIER.fullmatch(value)
    )
    if is_list or (separator == "," and not has_digit(value)):
        return None
    return (begin, end) if is_secret_value(role, value, quoted=True) else None


def _scheme_length(text: str, begin: int, end: int, name: str) -> int:
    """Returns the length of `Bearer ` or another scheme at the start of an Authorization header, which is no secret."""
    if not name.lower().endswith("authorization"):
        return 0
    match = _SCHEME.match(text, begin, end)
    return len(match[0]) if match is not None else 0


def _closing(text: str, begin: int, quote: str) -> int:
    """Returns the position of the quote that closes a value: the next equal one that is not escaped once more."""
    line_end = text.find("\n", begin, begin + _MAX_QUOTED)
    limit = line_end if line_end >= 0 else min(len(text), begin + _MAX_QUOTED)
    at = text.find(quote, begin, limit)
    while at > begin and text[at - 1] == "\\":
        at = text.find(quote, at + 1, limit)
    return at if at >= 0 else limit
