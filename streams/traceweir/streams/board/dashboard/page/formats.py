"""Writes numbers and times as the page shows them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Decimal

import orjson
from markupsafe import Markup

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
NOTHING = "–"
"""What stands for a figure that does not exist."""


def percent(share: float | None, digits: int = 1) -> str:
    """Returns a share as a percentage.

    >>> percent(0.8642), percent(None), percent(1.0), percent(0.99996)
    ('86.4 %', '–', '100 %', '> 99.9 %')
    """
    if share is None:
        return NOTHING
    if share in (0.0, 1.0):
        return f"{share * 100:.0f} %"
    step = 10**-digits
    if share * 100 > 100 - step / 2:
        return f"> {100 - step:.{digits}f} %"
    if share * 100 < step / 2:
        return f"< {step:.{digits}f} %"
    return f"{share * 100:.{digits}f} %"


def points(difference: float | None) -> str:
    """Returns a difference of shares in percentage points, with its sign.

    >>> points(-0.079), points(0.0), points(None)
    ('−7.9 points', '±0.0 points', '–')
    """
    return NOTHING if difference is None else f"{_signed(difference * 100, 1)} points"


def number(value: float | None) -> str:
    """Returns a count with a thin space between groups of three digits, and another number with four digits at most.

    >>> number(48213).split("\\u202f"), number(0.31456), number(None), number(12.5)
    (['48', '213'], '0.315', '–', '12.5')
    """
    if value is None:
        return NOTHING
    if isinstance(value, int) or (value.is_integer() and abs(value) >= 1000):
        return f"{int(value):,}".replace(",", "\u202f")
    if not math.isfinite(value):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", "\u202f")


def kappa(value: float | None) -> str:
    """Returns a kappa with two decimals: those after them say nothing, and one near 0 has no exponent.

    >>> kappa(6.31e-05), kappa(-0.001), kappa(-0.126), kappa(1.0), kappa(None)
    ('0.00', '0.00', '-0.13', '1.00', '–')
    """
    # Without the addition, a small negative one would be -0.00.
    return NOTHING if value is None else f"{round(value, 2) + 0.0:.2f}"


def signed(value: float | None) -> str:
    """Returns a difference with its sign, and as many digits as `number` gives.

    >>> signed(0.25), signed(-1.5), signed(-12_345.6).replace("\\u202f", " "), signed(0.0), signed(None)
    ('+0.25', '−1.5', '−12 346', '±0', '–')
    """
    if value is None:
        return NOTHING
    return f"{'+' if value > 0 else '−' if value < 0 else '±'}{number(abs(value))}"


def seconds(value: float | None) -> str:
    """Returns a duration.

    >>> seconds(0.0123), seconds(1.25), seconds(95), seconds(7300), seconds(None)
    ('12 ms', '1.2 s', '1 min 35 s', '2 h 1 min', '–')
    >>> seconds(900), seconds(86400)
    ('15 min', '24 h')
    """
    if value is None:
        return NOTHING
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest if not hours else 0, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def usd(value: float | None) -> str:
    """Returns an amount of USD.

    >>> usd(41.066), usd(0.0004), usd(0.0000861), usd(0), usd(None)
    ('$ 41.07', '$ 0.0004', '$ 0.000086', '$ 0', '–')
    """
    if value is None:
        return NOTHING
    if value == 0:
        return "$ 0"
    # An amount of money has no exponent.
    return f"$ {value:.2f}" if value >= 0.01 else f"$ {Decimal(f'{value:.2g}'):f}"


def moment(value: datetime | str | None) -> str:
    """Returns a time in UTC, to the second.

    >>> moment("2026-01-31T12:00:01.5+01:00"), moment(None)
    ('2026-01-31 11:00:01', '–')
    """
    if value is None:
        return NOTHING
    return _datetime(value).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def when(value: datetime | str | None) -> str:
    """Returns a time as `moment` does, as markup: a page shows it in the zone of the browser while the pointer is on it.

    >>> str(when("2026-01-31T12:00:01.5+01:00")), when(None)
    ('<time datetime="2026-01-31T11:00:01.500000Z">2026-01-31 11:00:01</time>', '–')
    """
    if value is None:
        return NOTHING
    return Markup('<time datetime="{}">{}</time>').format(iso(value), moment(value))


def iso(value: datetime | str) -> str:
    """Returns a time in UTC as ISO 8601, as an address has it.

    >>> iso(datetime(2026, 1, 31, 12, tzinfo=UTC))
    '2026-01-31T12:00:00Z'
    """
    return _datetime(value).astimezone(UTC).isoformat().replace("+00:00", "Z")


def json_text(value: object) -> str:
    """Returns a document of JSON on one line if it is short, else indented."""
    line = orjson.dumps(value).decode()
    return line if len(line) <= 100 else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def unix_moment(value: float) -> str:
    """Returns a time in seconds since 1970 as `moment` does.

    >>> unix_moment(0)
    '1970-01-01 00:00:00'
    """
    return moment(datetime.fromtimestamp(value, UTC))


def cut(text: str, longest: int = 20_000) -> str:
    """Returns the beginning of a text, and says how much is missing.

    >>> cut("abcdef", 4), cut("abcd", 4)
    ('abcd … (2 more characters)', 'abcd')
    """
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest} more characters)"


def inert_text(text: str) -> str:
    """Returns a text as `inert` does."""
    return text if text.isprintable() else _UNSEEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def inert(value: object) -> object:
    """Returns a text with escapes for control characters and for characters that reorder the text around them.

    Line breaks and tabs stay. Other values stay as they are.

    >>> inert("photo" + chr(0x202E) + "gnp.exe"), inert(5)
    ('photo\\\\u202egnp.exe', 5)
    """
    # A subclass is markup, which templates have made.
    return inert_text(value) if type(value) is str else value


def breakable(name: str) -> Markup:
    """Returns a name as markup that a browser can break after each underscore.

    >>> str(breakable("tool_<b>"))
    'tool_<wbr>&lt;b&gt;'
    """
    return Markup("_<wbr>").join(str(inert(name)).split("_"))


def signed_percent(value: float) -> str:
    """Returns a change in percent with its sign.

    >>> signed_percent(4.13)
    '+4.1 %'
    """
    return f"{_signed(value, 1)} %"


def tojson_text(value: object) -> str:
    """Returns a value as JSON for an attribute; the template escapes it."""
    return orjson.dumps(value).decode()


def _datetime(value: datetime | str) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _signed(value: float, digits: int) -> str:
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return f"±{text}"
    return f"{'+' if value > 0 else '−'}{text}"


FILTERS = {
    each.__name__: each
    for each in (
        breakable, cut, iso, json_text, kappa, moment, number, percent, points, seconds, signed, signed_percent,
        tojson_text, unix_moment, usd, when,
    )
}  # fmt: skip
"""The functions by the names under which templates use them."""
