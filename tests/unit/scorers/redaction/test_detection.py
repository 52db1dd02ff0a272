"""Tests where redaction looks for secrets: names, sentences, encodings, broken lines, and identifiers with checks."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from traceweir.scorers.redaction.checksums import iban_length, is_card, is_resident_number
from traceweir.scorers.redaction.redaction import redact, redact_text
from traceweir.scorers.redaction.secret_names import secret_role

TOKEN = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3iJ6"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("The password for the box is hunter2.", "The password for the box is [REDACTED:password]."),
        ("비밀번호는 hunter2입니다", "비밀번호는 [REDACTED:password]입니다"),
        ("비번: 1q2w3e4r!", "비번: [REDACTED:password]"),
        ("PASSWORD=letmein", "PASSWORD=[REDACTED:password]"),
        ("password: correct-horse-battery-staple", "password: [REDACTED:password]"),
        ("<password>hunter2</password>", "<password>[REDACTED:password]</password>"),
        ('<add key="ApiKey" value="a1b2c3d4" />', '<add key="ApiKey" value="[REDACTED:password]" />'),
        ("- name: DB_PASSWORD\n  value: hunter2", "- name: DB_PASSWORD\n  value: [REDACTED:password]"),
        ("password:\n    hunter2", "password:\n    [REDACTED:password]"),
        ("| password | hunter2 |", "| password | [REDACTED:password] |"),
        ("?access_token=a1b2c3d4&page=2", "?access_token=[REDACTED:password]&page=2"),
        ("mysql --password hunter2 -h db", "mysql --password [REDACTED:password] -h db"),
        ("Cookie: theme=dark; auth=a1b2c3", "Cookie: [REDACTED:password]"),
        ("Authorization: Token a1b2c3d4e5", "Authorization: Token [REDACTED:password]"),
        ("card 4111 1111 1111 1111.", "card [REDACTED:card]."),
        ("amex 3782 822463 10005", "amex [REDACTED:card]"),
        ("IBAN DE89 3704 0044 0532 0130 00.", "IBAN [REDACTED:iban]."),
        ("주민번호는 850214-2345671입니다", "주민번호는 [REDACTED:resident_number]입니다"),
        ("SSN 078-05-1120", "SSN [REDACTED:ssn]"),
        ("from 2001:db8:85a3::8a2e:370:7334 now", "from [REDACTED:ip] now"),
    ],
)
def test_secrets_are_found_by_names_sentences_and_checks(text: str, redacted: str) -> None:
    assert redact_text(text) == redacted


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"a {base64.b64encode(f'token: {TOKEN}'.encode()).decode()} b", "a [REDACTED:api_key] b"),
        (f"a {base64.b64encode(base64.b64encode(TOKEN.encode())).decode()} b", "a [REDACTED:api_key] b"),
        (f"a {base64.b64encode(TOKEN.encode('utf-16-le')).decode()} b", "a [REDACTED:api_key] b"),
        (f"a {TOKEN.encode().hex()} b", "a [REDACTED:api_key] b"),
        (f"?q={quote('password=hunter2&a=1', safe='')}", "?q=password%3D[REDACTED:password]%26a%3D1"),
        (f"?q={quote(quote('mail kim@example.com'))}", "?q=mail%2520[REDACTED:email]"),
        ("{&quot;password&quot;: &quot;hunter2&quot;}", "{&quot;password&quot;: &quot;[REDACTED:password]&quot;}"),
        (r"password\u003dhunter2", r"password\u003d[REDACTED:password]"),
        (f"{TOKEN[:20]}\n{TOKEN[20:]} works", "[REDACTED:api_key] works"),
        (f'"{TOKEN[:20]}" +\n    "{TOKEN[20:]}"', '"[REDACTED:api_key]"'),
        (f"> {TOKEN[:20]}\n> {TOKEN[20:]}", "> [REDACTED:api_key]"),
    ],
)
def test_an_encoded_secret_is_replaced_where_it_stands(text: str, redacted: str) -> None:
    assert redact_text(text) == redacted


def test_json_that_is_escaped_three_times_is_read() -> None:
    text = json.dumps(json.dumps(json.dumps({"db": {"password": "Tr0ub4dor&3", "host": "db1"}})))
    redacted = redact_text(text)
    assert "Tr0ub4dor" not in redacted
    assert json.loads(json.loads(json.loads(redacted)))["db"]["host"] == "db1"


def test_the_line_after_a_whole_secret_stays() -> None:
    assert redact_text(f"{TOKEN}\nThanks\nuser = kim") == "[REDACTED:api_key]\nThanks\nuser = kim"


def test_a_base64_run_beyond_the_depth_stays() -> None:
    run = TOKEN
    for _ in range(6):
        run = base64.b64encode(run.encode()).decode()
    assert redact_text(run) == run


@pytest.mark.parametrize(
    ("name", "role"),
    [
        *(("Authorization", "secret"), ("Set-Cookie", "cookie"), ("dsn", "address"), ("DATABASE_URL", "address")),
        *(("connectionString", "address"), ("credentials", "secret"), ("AccountKey", "secret"), ("api_key", "secret")),
        *(("client_secret", "secret"), ("DB_PASS", "password"), ("사용자 비밀번호", "password"), ("FERNET_KEY", "key")),
        *(("next_token", ""), ("nextPageToken", ""), ("max_tokens", ""), ("tokenizer", ""), ("primary_key", "")),
        *(("pass", ""), ("compass", ""), ("secretary", ""), ("key", ""), ("", ""), ("password_policy", "")),
    ],
)
def test_a_name_is_compared_by_whole_words(name: str, role: str) -> None:
    assert secret_role(name) == role


@pytest.mark.parametrize("value", ["required", "<your-key>", "${KEY}", "********", "string", "Enter your password"])
def test_a_placeholder_under_a_secret_key_stays(value: str) -> None:
    assert redact({"password": value}) == {"password": value}


@pytest.mark.parametrize("number", ["4111111111111112", "4111-11111111-1111-1", "1234567890123452", "0000000000000000"])
def test_a_number_without_the_check_digit_or_prefix_is_no_card(number: str) -> None:
    assert not is_card(number)


@pytest.mark.parametrize("text", ["DE88 3704 0044 0532 0130 00", "XX89370400440532013000", "DE89", ""])
def test_a_text_with_another_remainder_country_or_length_is_no_iban(text: str) -> None:
    assert iban_length(text) == 0


@pytest.mark.parametrize("number", ["901301-1234568", "900101-9234568", "9001011234567"])
def test_a_resident_number_needs_a_date_a_century_and_without_a_hyphen_the_check_digit(number: str) -> None:
    assert not is_resident_number(number)
