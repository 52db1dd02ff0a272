"""Checks numbers that carry check digits or a date: payment cards, IBANs and resident registration numbers."""

from __future__ import annotations

import re
from datetime import date

_CARD_PREFIX = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|9(?:4|5|6)\d{14}"
)
_CARD_GROUPS = re.compile(r"\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}|\d{4}[ -]\d{6}[ -]\d{4,5}")
IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28, "CH": 21,
    "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27,
    "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27,
    "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23,
    "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
"""Length of an IBAN by country, without spaces (SWIFT's IBAN registry)."""
_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)


def is_card(text: str) -> bool:
    """Returns whether digits, plain or in the usual groups, are the number of a payment card (ISO/IEC 7812-1, Luhn).

    >>> is_card("4111 1111 1111 1111"), is_card("4111 1111 1111 1112"), is_card("1234567890123452")
    (True, False, False)
    """
    digits = text.replace(" ", "").replace("-", "")
    if _CARD_GROUPS.fullmatch(text) is None or _CARD_PREFIX.fullmatch(digits) is None or len(set(digits)) < 2:
        return False
    doubled = [int(digit) * (2 if index % 2 else 1) for index, digit in enumerate(reversed(digits))]
    return sum(value // 10 + value % 10 for value in doubled) % 10 == 0


def iban_length(text: str) -> int:
    """Returns the length of the IBAN at the start of the text, with its spaces, or 0 (ISO 13616, mod 97).

    >>> iban_length("GB82 WEST 1234 5698 7654 32 and more"), iban_length("GB00 WEST 1234 5698 7654 32")
    (27, 0)
    """
    expected = IBAN_LENGTHS.get(text[:2], 0)
    characters = ""
    length = 0
    while length < len(text) and len(characters) < expected:
        characters += text[length].strip(" -")
        length += 1
    if not expected or len(characters) != expected or not characters.isascii() or not characters.isalnum():
        return 0
    number = "".join(str(int(character, 36)) for character in characters[4:] + characters[:4])
    return length if int(number) % 97 == 1 else 0


def is_resident_number(text: str) -> bool:
    """Returns whether 13 digits are a Korean resident registration number.

    The first six digits must be a date of birth, and the seventh a sex and century. Numbers without a hyphen also need the
    check digit. Numbers that were assigned since October 2020 have none, and people write them with a hyphen.

    >>> is_resident_number("900101-1234568"), is_resident_number("901301-1234568"), is_resident_number("9001011234560")
    (True, False, False)
    """
    digits = [int(character) for character in text if character.isdigit()]
    if len(digits) != 13 or not 1 <= digits[6] <= 8:
        return False
    century = 1900 if digits[6] in (1, 2, 5, 6) else 2000
    try:
        date(century + digits[0] * 10 + digits[1], digits[2] * 10 + digits[3], digits[4] * 10 + digits[5])
    except ValueError:
        return False
    total = sum(digit * weight for digit, weight in zip(digits, _WEIGHTS, strict=False))
    return "-" in text or (11 - total % 11) % 10 == digits[12]


def is_social_security_number(text: str) -> bool:
    """Returns whether `AAA-GG-SSSS` can be a social security number of the United States.

    The Social Security Administration assigns no area 000, 666 or 900 to 999, no group 00 and no serial number 0000.

    >>> is_social_security_number("123-45-6789"), is_social_security_number("666-45-6789")
    (True, False)
    """
    area, group, serial = re.split("[- ]", text)
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"
