"""Tests what redaction replaces, what it keeps, and that a document keeps its shape.

The secrets below are fictitious and concatenated from parts, so that repository scanners do not report them.
"""

import json

import pytest
from pydantic import JsonValue

from traceweir.scorers.redaction.redaction import redact, redact_text

LETTERS, HEX = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG3iJ6lM9o", "0123456789abcdef"

SECRETS = {
    "postgresql://app:pw@db.internal:5432/orders": "[REDACTED:connection_string]",
    "use redis://:hunter2@localhost:6379/0 here": "use [REDACTED:connection_string] here",
    "postgresql+asyncpg://u:pw@h/db, then go": "[REDACTED:connection_string], then go",
    "dial app:hunter2@tcp(db:3306)/orders?parseTime=true": "dial [REDACTED:connection_string]",
    "jdbc:oracle:thin:app/hunter2@db:1521:orders": "jdbc:oracle:thin:[REDACTED:connection_string]",
    "MONGODB+SRV://u:p@cluster0.example.net": "[REDACTED:connection_string]",
    "git clone https://bot:hunter2@git.example.com/x.git now": "git clone https://[REDACTED:connection_string] now",
    f"Authorization: Bearer {LETTERS}": "Authorization: Bearer [REDACTED:bearer_token]",
    f"authorization: bearer {LETTERS}": "authorization: bearer [REDACTED:bearer_token]",
    f"got eyJ{LETTERS}.eyJ{LETTERS}.{LETTERS} back": "got [REDACTED:bearer_token] back",
    f"key sk-{LETTERS}.": "key [REDACTED:api_key].",
    f"sk-proj-{LETTERS}_x": "[REDACTED:api_key]",
    f"ghp_{LETTERS} ghs_{LETTERS}": "[REDACTED:api_key] [REDACTED:api_key]",
    f"github_pat_{LETTERS}": "[REDACTED:api_key]",
    f"id {'AKIA'}IOSFODNN7EXAMPLE": "id [REDACTED:api_key]",
    f"kp_{HEX}": "[REDACTED:api_key]",
    f"Bearer kp_{HEX}": "Bearer [REDACTED:api_key]",
    f"xoxb-{LETTERS}-1": "[REDACTED:api_key]",
    "password=hunter2": "password=[REDACTED:password]",
    "Password: hunter2, then go": "Password: [REDACTED:password], then go",
    "DB_PASSWORD='a b c'": "DB_PASSWORD='[REDACTED:password]'",
    "clientSecret = s3cr3t;": "clientSecret = [REDACTED:password];",
    'say "api_key": "x y"': 'say "api_key": "[REDACTED:password]"',
    r'"{\"token\": \"a\\\"b\", \"n\": 1}"': r'"{\"token\": \"[REDACTED:password]\", \"n\": 1}"',
    r'{"password": "a\"b", "n": 1}': '{"password": "[REDACTED:password]", "n": 1}',
    "password=kim@example.com": "password=[REDACTED:password]",
    "비밀번호: hunter2": "비밀번호: [REDACTED:password]",
    "암호=열려라참깨": "암호=[REDACTED:password]",
    f"a -----BEGIN RSA PRIVATE KEY-----\n{LETTERS}\n-----END RSA PRIVATE KEY----- b": "a [REDACTED:private_key] b",
    f"cut off: -----BEGIN PRIVATE KEY-----\n{LETTERS}": "cut off: [REDACTED:private_key]",
}

IDENTIFIERS = {
    "mail kim.minsu+x@mail.example.co.kr.": "mail [REDACTED:email].",
    "메일은test@example.com으로": "메일은[REDACTED:email]으로",
    "<lee@example.com>,park@example.org": "<[REDACTED:email]>,[REDACTED:email]",
    "(555) 123-4567": "[REDACTED:phone]",
    "(415)555-2671 or 415-555-2671": "[REDACTED:phone] or [REDACTED:phone]",
    "call 415 555 2671 or 415.555.2671.": "call [REDACTED:phone] or [REDACTED:phone].",
    "+1-555-234-5678 and 1-800-555-0199": "[REDACTED:phone] and [REDACTED:phone]",
    "tel:+14155552671": "tel:[REDACTED:phone]",
    "+44 20 7946 0958, London": "[REDACTED:phone], London",
    "+82 10 1234 5678 2024-05-20": "[REDACTED:phone] 2024-05-20",
    "+821012345678로 연락": "[REDACTED:phone]로 연락",
    "전화 010-1234-5678로 연락": "전화 [REDACTED:phone]로 연락",
    "연락처는 01012345678입니다": "연락처는 [REDACTED:phone]입니다",
    "휴대폰 010 1234 5678, 010.1234.5678": "휴대폰 [REDACTED:phone], [REDACTED:phone]",
    "옛 번호 011-234-5678": "옛 번호 [REDACTED:phone]",
    "HP010-1234-5678, tel02-123-4567x12": "HP[REDACTED:phone], tel[REDACTED:phone]x12",
    "02-123-4567, 031-1234-5678, 070-1234-5678": "[REDACTED:phone], [REDACTED:phone], [REDACTED:phone]",
    "서울 02)123-4567 부산 (051) 123-4567": "서울 [REDACTED:phone] 부산 [REDACTED:phone]",
    "02 312 4567": "[REDACTED:phone]",
    "from 10.0.0.1:8080 to 192.168.10.254.": "from [REDACTED:ip]:8080 to [REDACTED:ip].",
    "서버는 203.0.113.7입니다": "서버는 [REDACTED:ip]입니다",
    "open /home/kim/secret/plan.md now": "open [REDACTED:filepath] now",
    "'/Users/lee/a b'": "'[REDACTED:filepath] b'",
    "파일 /home/민수/자료.txt": "파일 [REDACTED:filepath]",
    r"C:\Users\Park\Desktop\a.xlsx, b": "[REDACTED:filepath], b",
    "docker --mount type=bind,src=/home/alice/data": "docker --mount type=bind,src=[REDACTED:filepath]",
    "action=/home/alice/run.sh": "action=[REDACTED:filepath]",
    "https://example.com/open?file=/home/alice/.ssh/id_rsa": "https://example.com/open?file=[REDACTED:filepath]",
    "https://example.com?file=/home/alice/.ssh/id_rsa": "https://example.com?file=[REDACTED:filepath]",
    "https://example.com/open#/home/alice/a": "https://example.com/open#[REDACTED:filepath]",
    "www.example.com/open?file=/home/alice/a": "www.example.com/open?file=[REDACTED:filepath]",
    "GET /open?file=/home/alice/a HTTP/1.1": "GET /open?file=[REDACTED:filepath] HTTP/1.1",
}

LEFT_ALONE = [
    "flight HAT136 on 2024-05-20 at 10:00-12:30, arriving 2024-05-21T00:15:00",
    "2024-05-20T15:00:00.000Z, 20240520, 2024.05.20 10:30, 05/20/2024",
    "credit_card_4421486, gift_card_5634230, certificate_7815826",
    "reservation 4WQ150 of mia_li_3668, order #W2378156, product 6086499569, item 9612497925",
    "order 4155552671, ticket 1234567890, at 1716200000 or 1716200000000",
    "id 550e8400-e29b-41d4-a716-446655440000, commit 9ff0e3f4",
    "3f2a1010-4068-4295-9319-5d0c6f1b2a77, 3F2A1C4B-0505-4123-8123-5D0C6F1B2A77, 3f2a1c4b-a010-4068-8295-5d0c6f1b2a77",
    "total 1,234,567.00 won, 3.14159265, 0.123456789, 523.45 200 1550",
    "rows 100 200 3000 and 200 300 4000",
    "ISBN 978-3-16-148410-0",
    "v1.2.3.4, numpy 1.26.4, python 3.11.14, 1.2.3",
    "kp:trace:7d3f-2024-0520-001",
    "주문번호 20240520123456, 좌석 12A, 금액 123,456원, 2024년 5월 20일",
    "항공편 KE102, 예약 5555-6666, 계좌 이체 3회",
    "utilisé le +0900, C++20240520, +1000 points, a+12345",
    "pip install package@1.2.3, @types/node@18.0.0-beta, user@localhost",
    "The password is required. Reset your password? 비밀번호는 필수입니다",
    "max_tokens: 512, tokens=17, tokenizer: fast, secretary: Kim",
    "sk-learn-compatible-estimator-classes, task-force-one-hundred-and-two, a risk-free trial",
    "Bearer of good news, bearer certificates",
    "see https://example.com/docs?page=2#a:b@c and s3://bucket/key",
    "/usr/home, /homepage, home/kim, C:\\Windows\\System32",
    "-----BEGIN CERTIFICATE-----",
    "",
    "https://example.com/home/about and http://shop.example/en/home/sale?x=1",
    "open www.example.com/Users/guide or GET /home/feed HTTP/1.1",
    '<a href="/home/news">',
    "<a class=x href=/home/news>",
    "postgresql://db.internal:5432/orders",
    "postgresql+asyncpg://u@h/db, then use redis://localhost:6379/0 here",
    "DATABASE_URL=mysql://app@database/orders",
    "DATABASE_URL=postgres://prod-db-1a2b3c4d5e.cluster-xyz123abc.eu-west-1.rds.amazonaws.com/orders",
    "DSN=sqlite:///data/orders2.db",
    'connectionString: "Server=db;Database=orders;Trusted_Connection=yes"',
    "sk-learn-pipeline-v2-2024, sk-layer12-block3-norm1",
    "sk_test_placeholder, glrt-some-long-words-of-a-name, hvs.this_is_no_token_but_words",
    "kp_someFunctionForThePackage and hf_downloadAllTheModelFilesForThisPage",
    "pass: 12, fail: 3; pass: all tests; auth: oauth2; auth=basic; bearer: none; pw: short",
    "session: morning-session-12; session=42; csrf: enabled; session: 3f2a1c4b-0505-4123-8123-5d0c6f1b2a77",
    "パスワード: 必須, 密码：必填, Passwort: erforderlich, пароль: обязательно",
    "ﬁve ①②③ ½ ㎏ ﷺ ＡＢＣ",
    "--- PASS: TestHTTP2Server (0.01s)",
    "PASS: t0001-init.sh, PASS | t0002x9q",
    "pass: tests/unit/test_a1.py, pass: test_a1b2.py, pass: stage-2-run-3",
    "auth: scram-sha-256, auth: hmac-sha256, auth: PEAP-MSCHAPv2, auth: x509-cert",
    'auth: "OAuth2.0"',
    '{"auth": "api-v2"}, {"auth":"api-v2"}',
    "密码：至少8位，包含字母和数字",
    "パスワード：8文字以上の英数字",
    '{"session": "projects-2024-q1-Planning2025Offsite"}',
    '{"session": "run20240615T101500abc"}',
    "session: agent-20240615T101500Z7f",
    "session_id: 5f2b9c0e4d1a4c7e8b6f0a1d2c3e4f50",
    '{"session_id": "5f2b9c0e4d1a4c7e8b6f0a1d2c3e4f50"}',
]


def test_values_of_short_names_and_sessions_that_look_made_up_are_secrets() -> None:
    for text, value in SHORT_NAMES.items():
        assert value not in redact_text(text), text


SHORT_NAMES = {
    "pass: hunter2x9": "hunter2x9",
    "auth: k8Jd02mXq": "k8Jd02mXq",
    '{"auth": "Tr0ub4dor&3"}': "Tr0ub4dor&3",
    "PASS=x9Kq27Lm": "x9Kq27Lm",
    "csrf: 9f86d081884c7d65": "9f86d081884c7d65",
    "session: 8f3kD92mQx71LzPw0a": "8f3kD92mQx71LzPw0a",
    "session=9f86d081884c7d659a2feaa0c55ad015": "9f86d081884c7d659a2feaa0c55ad015",
    "sessionid=9f86d081884c7d659a2feaa0c55ad015": "9f86d081884c7d659a2feaa0c55ad015",
    "Cookie: sessionid=9f86d081884c7d659a2feaa0c55ad015": "9f86d081884c7d659a2feaa0c55ad015",
    "PHPSESSID: a1b2c3d4e5f6a7b8c9d0e1f2a3": "a1b2c3d4e5f6a7b8c9d0e1f2a3",
    "密码：hunter2。": "hunter2",
}


@pytest.mark.parametrize(("text", "redacted"), [*SECRETS.items(), *IDENTIFIERS.items()])
def test_secrets_and_identifiers_become_tokens_that_name_their_kind(text: str, redacted: str) -> None:
    assert redact_text(text) == redacted
    assert redact_text(redacted) == redacted


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_other_text_of_agents_stays_unchanged(text: str) -> None:
    assert redact_text(text) == text


def test_every_string_of_a_document_is_redacted_keys_included() -> None:
    document: JsonValue = {
        "steps": [{"content": "mail kim@example.com"}, ["10.0.0.1", 7, None]],
        "kim@example.com": True,
    }
    assert redact(document) == {
        "steps": [{"content": "mail [REDACTED:email]"}, ["[REDACTED:ip]", 7, None]],
        "[REDACTED:email]": True,
    }


def test_the_original_document_is_not_changed() -> None:
    document: JsonValue = {"a": ["kim@example.com"], "b": {"password": "x"}}
    before = json.dumps(document)
    redact(document)
    assert json.dumps(document) == before


@pytest.mark.parametrize(
    "key", ["password", "DB_PASSWORD", "apiKey", "x-api-key", "access_token", "clientSecret", "비밀번호"]
)
def test_strings_under_a_key_that_names_a_secret_are_redacted_completely(key: str) -> None:
    assert redact({key: "open sesame"}) == {key: "[REDACTED:password]"}
    assert redact({key: [{"value": "open sesame"}]}) == {key: [{"value": "[REDACTED:password]"}]}


def test_numbers_booleans_and_empty_strings_under_a_secret_key_stay_unchanged() -> None:
    assert redact({"token": 5, "password": "", "secret": None}) == {"token": 5, "password": "", "secret": None}


@pytest.mark.parametrize("key", ["tokens", "max_tokens", "token_count", "secretary", "password_changed_at"])
def test_values_under_other_keys_are_not_redacted(key: str) -> None:
    assert redact({key: "open sesame"}) == {key: "open sesame"}


def test_keys_that_become_equal_keep_their_values() -> None:
    document: JsonValue = {"a@x.com": 1, "[REDACTED:email]": 2, "b@x.com": 3, "[REDACTED:email]#2": 4, "c@x.com": 5}
    redacted = redact(document)
    assert isinstance(redacted, dict)
    assert list(redacted.values()) == [1, 2, 3, 4, 5]
    assert list(redacted) == [
        "[REDACTED:email]#3",
        "[REDACTED:email]",
        "[REDACTED:email]#4",
        "[REDACTED:email]#2",
        "[REDACTED:email]#5",
    ]
    assert redact(redacted) == redacted


def test_a_document_nested_deeper_than_the_stack_is_redacted() -> None:
    document: JsonValue = "kim@example.com"
    for _ in range(20_001):
        document = [document]
    redacted = redact(document)
    while isinstance(redacted, list):
        (redacted,) = redacted
    assert redacted == "[REDACTED:email]"


@pytest.mark.parametrize("value", ["kim@example.com", 1, 1.5, True, None])
def test_a_bare_value_is_a_document_too(value: JsonValue) -> None:
    assert redact(value) == ("[REDACTED:email]" if isinstance(value, str) else value)
