"""Tests where redaction looks for secrets: names, sentences, encodings, broken lines, and identifiers with checks."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceweir.scorers.redaction.checksums import iban_length, is_card, is_resident_number
from traceweir.scorers.redaction.plain_text import plain, plain_name
from traceweir.scorers.redaction.redaction import redact, redact_text
from traceweir.scorers.redaction.secret_names import FOREIGN_NAMES, secret_role

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
        *(("password1", "password"), ("api_key_2", "secret"), ("pw", "short"), ("auth", "short"), ("bearer", "short")),
        *(
            ("csrf", "short"),
            ("session", "session"),
            ("Passwort", "password"),
            ("パスワード", "password"),
            ("密码", "password"),
        ),
        *(("пароль", "password"), ("Contraseña", "password"), ("mot_de_passe", "password"), ("db_pw", "password")),
        *(("ｐａｓｓｗｏｒｄ", "password"), ("pass\u200bword", "password"), ("비밀번호", "password"), ("sha256", "")),
        *(("bypass", ""), ("key1", ""), ("session_count", ""), ("sessions", ""), ("author", ""), ("page2", "")),
        *(("pass", "short"), ("compass", ""), ("secretary", ""), ("key", ""), ("", ""), ("password_policy", "")),
    ],
)
def test_a_name_is_compared_by_whole_words(name: str, role: str) -> None:
    assert secret_role(name) == role


@pytest.mark.parametrize("write", [str, str.upper, str.title])
@pytest.mark.parametrize("name", FOREIGN_NAMES.split("|"))
def test_a_name_in_another_language_is_found_in_lower_and_upper_case(name: str, write: Callable[[str], str]) -> None:
    assert redact_text(f"{write(name)}=hunter2, ok") == f"{write(name)}=[REDACTED:password], ok"


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


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("say pass\u200bword=hunter2!", "say pass\u200bword=[REDACTED:password]"),
        ("ｐａｓｓｗｏｒｄ：ｈｕｎｔｅｒ２ ok", "ｐａｓｓｗｏｒｄ：[REDACTED:password] ok"),
        ("mail k\u00adim@exam\u2060ple.com now", "mail [REDACTED:email] now"),
        ("call ０１０－１２３４－５６７８ 지금", "call [REDACTED:phone] 지금"),
        ("密码：hunter2。", "密码：[REDACTED:password]"),
        ("パスワードは hunter2 です", "パスワードは [REDACTED:password] です"),
        ("ﾊﾟｽﾜｰﾄﾞ: hunter2, はい", "ﾊﾟｽﾜｰﾄﾞ: [REDACTED:password], はい"),
        ("пароль: hunter2, да", "пароль: [REDACTED:password], да"),
        ("Contraseña: hunter2", "Contraseña: [REDACTED:password]"),
        ("mot de passe : hunter2", "mot de passe : [REDACTED:password]"),
        ("비밀번호: hunter2", "비밀번호: [REDACTED:password]"),
        (r"say pass\u200bword=hunter2", r"say pass\u200bword=[REDACTED:password]"),
        ("password%EF%BC%9Dhunter2", "password%EF%BC%9D[REDACTED:password]"),
    ],
)
def test_a_secret_behind_unseen_characters_and_other_letters_is_cut_where_it_stands(text: str, redacted: str) -> None:
    assert redact_text(text) == redacted
    assert redact_text(redacted) == redacted


def test_every_format_character_is_taken_out() -> None:
    unseen = [each for each in map(chr, range(0x110000)) if unicodedata.category(each) == "Cf"]
    assert len(unseen) > 100
    assert [each for each in unseen if plain_name(f"a{each}b") != "ab"] == []


@given(st.text(st.sampled_from("ab1é\u0301\u0323\u200b\u00adﬁ①ﷺ가\u1100\u1161\u11a8ｘ\ufe0f "), max_size=30), st.data())
def test_a_part_of_the_plain_text_leads_back_to_what_reads_alike(text: str, data: st.DataObject) -> None:
    view = plain(text)
    if view is None or not view.text:
        return
    start = data.draw(st.integers(0, len(view.text) - 1))
    end = data.draw(st.integers(start + 1, len(view.text)))
    source = text[slice(*view.source(start, end))]
    assert view.text[start:end] in plain_name(source)
