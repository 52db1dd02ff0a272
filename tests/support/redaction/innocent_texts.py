"""Texts without a secret that look like texts with a secret."""

from __future__ import annotations

import base64
import hashlib
import random
import struct
import zlib
from uuid import UUID

_RNG = random.Random(7)


def _png(width: int) -> str:
    """Returns a small image in base64, as a data URL carries it."""
    rows = b"".join(b"\0" + bytes(_RNG.randrange(256) for _ in range(width * 3)) for _ in range(width))
    data = (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes([0, 0, 0, width, 0, 0, 0, width, 8, 2, 0, 0, 0]) + zlib.compress(rows)
    )
    return base64.b64encode(data).decode()


def _hex(length: int) -> str:
    return "".join(_RNG.choices("0123456789abcdef", k=length))


def _uuid() -> str:
    return str(UUID(int=_RNG.getrandbits(128), version=4))


_WRITTEN = """\
password: required
Password: must be at least 8 characters
The password is required.
Reset your password?
password: string
"password": {"type": "string", "minLength": 8}
{"type": "string", "format": "password"}
password = get_password(user)
password = None
password=os.environ["DB_PASSWORD"]
password: <your-password>
password: ${DB_PASSWORD}
password: ********
PASSWORD=changeme
password_hash = hashlib.sha256(data).hexdigest()
<input type="password" name="password" required>
{"password": "[hidden]"}
"password": null
The token expired, ask for a new one.
token: str
token: Optional[str] = None
token = response.json()["token"]
token=$GITHUB_TOKEN
next_token = 42
next_token: eyJpZCI6IDQyfQ
{"nextToken": "page-2", "items": []}
{"next_page_token": "CAUQAA", "count": 3}
max_tokens: 4096, total_tokens = 1234
{"usage": {"prompt_tokens": 812, "completion_tokens": 51}}
token_count = len(tokenizer.encode(text))
eos_token: </s>, pad_token: <pad>
for token in tokens: print(token.text)
api_key: <your-api-key>
api_key=YOUR_API_KEY_HERE
OPENAI_API_KEY=sk-...
api_key = settings.api_key
api_key: str | None = None
{"api_key": "xxxxxxxxxxxxxxxx"}
{"secret": false, "token": true}
secret: {{ .Values.secretName }}
secretKeyRef: {name: app, key: password}
client_secret is optional
Secret Santa: Friday at 3pm
The secret: patience.
secretary: Kim
access_key: n/a
AWS_SECRET_ACCESS_KEY=<secret>
credentials: include
credentials = load_credentials(path)
cookie: accepted
Authorization: required
Authorization: Bearer <token>
Authorization: Bearer ${TOKEN}
authorization = request.headers["authorization"]
dsn: not configured
DATABASE_URL is not set
connectionString: see appendix B
primary_key: order_id
foreign key: customer_id
sort key = created_at, partition key = user_id
cache key: user:1234:profile
key = "orders/2024/05"
keyboard: qwerty
see section 4.3.2.1
Section 10.2.3.4 describes the procedure.
version 1.2.3.4 is out
Chrome/120.0.0.0 Safari/537.36
firmware v2.10.3.7
numpy 1.26.4, python 3.11.14, pip==23.2.1
package==1.2.3.4
OID 1.3.6.1.4.1
listening on 127.0.0.1:8080 and [::1]:8080
bind 0.0.0.0
netmask 255.255.255.0
10:30:45 and 2024-05-20T15:00:00.000Z
2024-05-20 10:00:00,123 INFO started
at 1716200000 or 1716200000000
20240520123456
05/20/2024, 2024.05.20, 20 May 2024
12:34:56:78:9a:bc is the MAC address
std::vector<int>::iterator and Foo::Bar
a[1::2] and x[::-1]
aspect ratio 16:9, score 3:2, 1:1
flight HAT136, order #W2378156, user mia_li_3668
item 9612497925, product 6086499569
credit_card_4421486, gift_card_5634230
card ending in 4242
ISBN 978-3-16-148410-0
1234 5678 9012 3456
order number 4111111111111112
tracking 9400 1000 0000 0000 0000 00
total 1,234,567.00 won, $523.45, 3.14159265
rows 100 200 3000 and 200 300 4000
invoice 123-45-67890
part number 000-12-3456
KE102, 12A, Gate 4
GB29 is a postcode area
DE 4 weeks, FR 12 days
비밀번호는 필수입니다
비밀번호: 8자 이상 입력하세요
비밀번호를 잊으셨나요?
토큰이 만료되었습니다
주문번호 20240520123456, 좌석 12A, 금액 123,456원
2024년 5월 20일 오전 10시 30분
예약 5555-6666, 계좌 이체 3회
사업자등록번호 안내: 123-45-67890
/usr/local/lib/python3.11/site-packages/numpy/core/__init__.py
src/traceweir/streams/gate/novelty_scopes.py:120
C:\\Windows\\System32\\drivers\\etc\\hosts
/home/runner/build/app/tests
s3://bucket/key/part-00000.parquet
https://example.com/docs?page=2#section
https://example.com/search?q=a%20b%26c&lang=ko
git@github.com:example/app.git
pip install package@1.2.3, @types/node@18.0.0-beta
icon@2x.png
sk-learn-compatible-estimator-classes
task-force-one-hundred-and-two, a risk-free trial
Bearer of good news, bearer certificates
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
ssh-keygen -t ed25519 -C comment
def get_api_key_from_environment(name: str) -> str:
self.access_token_expires_at = now + timedelta(hours=1)
class RefreshTokenRepository(BaseRepository):
getElementById("passwordField").value
from app.auth import verify_password, create_access_token
SELECT id, password_hash FROM users WHERE token IS NULL
npm ERR! code E401, unable to authenticate
hf_transfer is installed, hf_hub too
key-value store, key-frame, key-binding
dapi is short for data API
pk_ and sk_ are prefixes
Then the line\\nbreaks, and \\"quotes\\" stay
{"path": "C:\\\\Temp", "text": "say \\"hi\\""}
antidisestablishmentarianism
supercalifragilisticexpialidocious1
THE_QUICK_BROWN_FOX_JUMPS_OVER_THE_LAZY_DOG_1
getUserAccountDetailsByCustomerIdentifier2
com.example.application.service.CustomerServiceImpl
Multi-line prose that goes
on and on over lines
until it ends.
total: 3 items
""".splitlines()

INNOCENT: tuple[str, ...] = (
    *_WRITTEN,
    "Prose that goes on\nover several lines\nuntil version 2.0\nis released",
    "name: app\nversion: 1.4.2\npassword:\n  required: true\ntoken:\n  type: string\n",
    "def login(user: str, password: str) -> bool:\n    return check(user, password=password)\n",
    "| key | value |\n|---|---|\n| timeout | 30 |\n",
    f"trace {_uuid()} of session {_uuid()}",
    f"request_id={_uuid()}",
    f'{{"id": "{_uuid()}", "parent": "{_uuid()}"}}',
    f"commit {_hex(40)}",
    f"merge {_hex(7)} into {_hex(8)}",
    f"md5: {_hex(32)}",
    f"sha256:{_hex(64)}",
    f"image@sha256:{_hex(64)}",
    f'ETag: "{_hex(32)}"',
    f"traceparent: 00-{_hex(32)}-{_hex(16)}-01",
    f"span {_hex(16)} took 12 ms",
    f"0x{_hex(40)}",
    "sha512-" + base64.b64encode(hashlib.sha512(b"package").digest()).decode(),
    "integrity sha256-" + base64.b64encode(hashlib.sha256(b"script").digest()).decode(),
    "data:image/png;base64," + _png(6),
    f'<img src="data:image/png;base64,{_png(9)}">',
    '{"image": "' + _png(12) + '"}',
    base64.b64encode(b"Hello, this is an ordinary text without anything to hide.").decode(),
    base64.b64encode(b'{"status": "ok", "count": 3, "password": null}').decode(),
    base64.b64encode("안녕하세요, 오늘 날씨가 좋네요.".encode()).decode(),
    "https://example.com/q?text=hello%20world%2C%20how%20are%20you%3F",
    "https://ko.wikipedia.org/wiki/%EC%84%9C%EC%9A%B8",
    '"{\\"a\\": \\"b\\", \\"password\\": \\"required\\"}"',
    "dQw4w9WgXcQ is the video",
    *(f"{name}-{_hex(32)}" for name in ("task", "mask", "pico", "task-sk", "mytask")),
    *(f"{name}-{_hex(40)}" for name in ("disk", "risk", "idempotency-key", "group-key")),
    *(f"{name}-{_hex(64)}" for name in ("cache-key", "sort-key")),
    f"TASK{_hex(32)}",
    f"layer8_{_hex(40)}",
    f"kotlin_api_{_hex(40)}",
    f"bkp_{_hex(16)}",
    "task-proj-20240615T101500Z-cleanup-x",
    "task-admin-20240615T101500Z-cleanup-of-users",
    "task-proj-Planning2025Offsite-and-more",
    "task_test_1718446500",
    "benchmark_test_20240615101500",
    "framework_prod_1718446500",
    "risk_live_20240615120000",
    '{"array": "' + base64.b64encode(struct.pack("<3000i", *range(3000))).decode() + '"}',
    '{"array": "' + base64.b64encode(struct.pack("<1500d", *range(1500))).decode() + '"}',
    '{"array": "' + base64.b64encode(struct.pack("<1500d", *map(_RNG.gauss, [0] * 1500))).decode() + '"}',
    f"01H{'8XGJWBWBAQ4Z5T3V8K2M9PQR'} is a ULID",
)
"""Texts that redaction must leave unchanged."""
