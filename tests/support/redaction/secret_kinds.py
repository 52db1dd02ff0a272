"""Generates fictitious secrets in the formats that their providers document.

Every secret is drawn from a seed and put together from parts, so that no secret stands in this repository.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

DIGITS, LOWER, UPPER = string.digits, string.ascii_lowercase, string.ascii_uppercase
HEX, ALNUM = "0123456789abcdef", string.ascii_letters + string.digits
BASE64, URL_SAFE = ALNUM + "+/", ALNUM + "-_"
BASE32 = UPPER + "234567"
_CODE = UPPER + DIGITS
WORDS = ("maple", "harbor", "violet", "copper", "falcon", "meadow", "granite", "ember")


class Secret(NamedTuple):
    """A secret and the text in which its provider writes it."""

    text: str
    core: str
    """The part of `text` that must not be published, for example the password of an address."""


class SecretKind(NamedTuple):
    """A kind of secret."""

    name: str
    """The name of a variable or a JSON key that holds such a secret."""
    label: str
    """How a person calls the secret in a sentence."""
    draw: Callable[[random.Random], Secret]
    has_form: bool
    """Whether the text alone shows that it is a secret. Other kinds are recognised by the words around them."""


def _drawn(rng: random.Random, alphabet: str, length: int) -> str:
    while True:
        drawn = "".join(rng.choices(alphabet, k=length))
        # A drawn text of one class alone (letters without a digit) is no secret of a provider.
        if length < 12 or alphabet in (LOWER, UPPER) or any(map(str.isdigit, drawn)):
            return drawn


def _token(*parts: str | tuple[str, int]) -> Callable[[random.Random], Secret]:
    def draw(rng: random.Random) -> Secret:
        text = "".join(part if isinstance(part, str) else _drawn(rng, *part) for part in parts)
        return Secret(text, text)

    return draw


def _after_prefix(prefix: str, *parts: str | tuple[str, int]) -> Callable[[random.Random], Secret]:
    """Returns what draws a secret with a prefix that can also be a word of the text around it."""

    def draw(rng: random.Random) -> Secret:
        core = _token(*parts)(rng).core
        return Secret(f"{prefix}{core}", core)

    return draw


def _password(rng: random.Random) -> str:
    word = rng.choice(WORDS)
    return rng.choice(
        [
            f"{word.capitalize()}{rng.choice('!#%?')}{rng.randrange(10, 9999)}",
            f"{word}{rng.randrange(10, 9999)}",
            _drawn(rng, ALNUM, 12),
            f"{_drawn(rng, LOWER, 4)}-{_drawn(rng, ALNUM, 12)}",
            _drawn(rng, ALNUM + "!*-_.", 16),
        ]
    )


def _plain_password(rng: random.Random) -> Secret:
    password = _password(rng)
    return Secret(password, password)


def _address(scheme: str, rest: str) -> Callable[[random.Random], Secret]:
    def draw(rng: random.Random) -> Secret:
        password = _drawn(rng, ALNUM, rng.randrange(10, 20))
        return Secret(f"{scheme}://{rng.choice(WORDS)}:{password}@{rest}", password)

    return draw


def _jwt(rng: random.Random) -> Secret:
    def part(document: Mapping[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")

    header, claims = part({"alg": "HS256", "typ": "JWT"}), part({"sub": _drawn(rng, DIGITS, 10), "iat": 1716239022})
    text = f"{header}.{claims}.{_drawn(rng, URL_SAFE, 43)}"
    return Secret(text, text)


def _private_key(rng: random.Random) -> Secret:
    name = rng.choice(["RSA ", "EC ", "OPENSSH ", ""])
    body = "\n".join(_drawn(rng, BASE64, 64) for _ in range(6))
    return Secret(f"{'-' * 5}BEGIN {name}PRIVATE KEY{'-' * 5}\n{body}\n{'-' * 5}END {name}PRIVATE KEY{'-' * 5}", body)


def _azure_storage(rng: random.Random) -> Secret:
    key = _drawn(rng, BASE64, 86) + "=="
    account = f"DefaultEndpointsProtocol=https;AccountName={rng.choice(WORDS)}store;Account"
    return Secret(f"{account}Key={key};EndpointSuffix=core.windows.net", key)


def _slack_webhook(rng: random.Random) -> Secret:
    path = f"T{_drawn(rng, _CODE, 9)}/B{_drawn(rng, _CODE, 9)}/{_drawn(rng, ALNUM, 24)}"
    return Secret(f"https://hooks.{'slack'}.com/services/{path}", path)


def _basic(rng: random.Random) -> Secret:
    encoded = base64.b64encode(f"{rng.choice(WORDS)}:{_drawn(rng, ALNUM, 14)}".encode()).decode()
    return Secret(f"Basic {encoded}", encoded.rstrip("="))


def _sentry(rng: random.Random) -> Secret:
    key = _drawn(rng, HEX, 32)
    return Secret(f"https://{key}@o{_drawn(rng, DIGITS, 6)}.ingest.sentry.io/{_drawn(rng, DIGITS, 7)}", key)


def _pypi(rng: random.Random) -> Secret:
    text = f"pypi-{'AgEIcHlwaS5vcmc'}{_drawn(rng, URL_SAFE, 120)}"
    return Secret(text, text)


def _uuid(rng: random.Random) -> Secret:
    text = str(UUID(int=rng.getrandbits(128), version=4))
    return Secret(text, text)


def luhn_digit(digits: str) -> str:
    """Returns the check digit of a payment card number (ISO/IEC 7812-1)."""
    doubled = [int(digit) * (2 if index % 2 == 0 else 1) for index, digit in enumerate(reversed(digits))]
    return str(-sum(value // 10 + value % 10 for value in doubled) % 10)


def _card(rng: random.Random) -> Secret:
    digits = rng.choice(["4", "51", "55", "2221", "6011"])
    digits += _drawn(rng, DIGITS, 15 - len(digits))
    digits += luhn_digit(digits)
    separator = rng.choice(["", " ", "-"])
    text = separator.join(digits[start : start + 4] for start in range(0, 16, 4))
    return Secret(text, text)


def _iban(rng: random.Random) -> Secret:
    country, account = rng.choice(
        [
            ("DE", _drawn(rng, DIGITS, 18)),
            ("GB", _drawn(rng, UPPER, 4) + _drawn(rng, DIGITS, 14)),
            ("FR", _drawn(rng, DIGITS, 23)),
            ("NL", _drawn(rng, UPPER, 4) + _drawn(rng, DIGITS, 10)),
        ]
    )
    number = int("".join(str(int(character, 36)) for character in f"{account}{country}00"))
    text = f"{country}{98 - number % 97:02}{account}"
    if rng.random() < 0.5:
        text = " ".join(text[start : start + 4] for start in range(0, len(text), 4))
    return Secret(text, text)


def _resident_number(rng: random.Random) -> Secret:
    birth = f"{rng.randrange(50, 99):02}{rng.randrange(1, 13):02}{rng.randrange(1, 29):02}"
    digits = f"{birth}{rng.choice('12')}{_drawn(rng, DIGITS, 5)}"
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    total = sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))
    text = f"{digits[:6]}-{digits[6:]}{(11 - total % 11) % 10}"
    return Secret(text, text)


def _social_security(rng: random.Random) -> Secret:
    text = f"{rng.randrange(1, 665):03}-{rng.randrange(1, 100):02}-{rng.randrange(1, 10000):04}"
    return Secret(text, text)


def _ipv6(rng: random.Random) -> Secret:
    groups = [f"{rng.randrange(0x1000, 0x10000):x}" for _ in range(6)]
    text = rng.choice([f"2001:db8:{':'.join(groups)}", f"2001:db8::{groups[0]}:{groups[1]}", f"fe80::{groups[2]}:1"])
    return Secret(text, text)


def _email(rng: random.Random) -> Secret:
    text = f"{rng.choice(WORDS)}.{_drawn(rng, LOWER, 5)}@{_drawn(rng, LOWER, 6)}.test"
    return Secret(text, text)


def _phone(rng: random.Random) -> Secret:
    text = f"010-{_drawn(rng, DIGITS, 4)}-{_drawn(rng, DIGITS, 4)}"
    return Secret(text, text)


def _formed(name: str, label: str, draw: Callable[[random.Random], Secret]) -> SecretKind:
    return SecretKind(name, label, draw, has_form=True)


def _named(name: str, label: str, draw: Callable[[random.Random], Secret]) -> SecretKind:
    return SecretKind(name, label, draw, has_form=False)


KINDS = (
    _formed("aws_access_key_id", "AWS access key", _token("AK" + "IA", (BASE32, 16))),
    _formed("aws_secret_access_key", "AWS secret key", _token((BASE64, 40))),
    _formed("github_token", "GitHub token", _token("gh" + "p_", (ALNUM, 36))),
    _formed("github_pat", "GitHub token", _after_prefix("github" + "_pat_", (ALNUM, 22), "_", (ALNUM, 59))),
    _formed("gitlab_token", "GitLab token", _token("gl" + "pat-", (URL_SAFE, 20))),
    _formed("slack_token", "Slack token", _token("xo" + "xb-", (DIGITS, 12), "-", (DIGITS, 12), "-", (ALNUM, 24))),
    _formed("slack_webhook_url", "Slack webhook", _slack_webhook),
    _formed("stripe_key", "Stripe key", _token("sk" + "_live_", (ALNUM, 24))),
    _formed("openai_api_key", "OpenAI key", _token("sk-" + "proj-", (URL_SAFE, 74), "T3Blbk" + "FJ", (URL_SAFE, 74))),
    _formed("anthropic_api_key", "Anthropic key", _token("sk-" + "ant-api03-", (URL_SAFE, 93), "AA")),
    _formed("google_api_key", "Google API key", _token("AI" + "za", (URL_SAFE, 35))),
    _formed("google_client_secret", "Google client secret", _token("GOC" + "SPX-", (URL_SAFE, 28))),
    _formed("azure_storage", "Azure connection string", _azure_storage),
    _formed("azure_client_secret", "Azure client secret", _token((ALNUM, 3), "8" + "Q~", (ALNUM + "-_~.", 34))),
    _formed("sendgrid_api_key", "SendGrid key", _token("S" + "G.", (URL_SAFE, 22), ".", (URL_SAFE, 43))),
    _formed("twilio_api_key", "Twilio key", _token("S" + "K", (HEX, 32))),
    _formed("mailgun_key", "Mailgun key", _token("key" + "-", (HEX, 32))),
    _formed("npm_token", "npm token", _token("np" + "m_", (ALNUM, 36))),
    _formed("pypi_token", "PyPI token", _pypi),
    _formed("huggingface_token", "Hugging Face token", _token("h" + "f_", (ALNUM, 34))),
    _formed("databricks_token", "Databricks token", _token("da" + "pi", (HEX, 32))),
    _formed("session_jwt", "JWT", _jwt),
    _formed("private_key", "private key", _private_key),
    _formed("database_url", "database address", _address("postgresql", "db.internal:5432/orders")),
    _formed("broker_url", "broker address", _address("amqps", "mq.example.net/prod")),
    _formed("git_remote", "remote", _address("https", "git.example.com/team/app.git")),
    _formed("telegram_bot_token", "Telegram bot token", _token((DIGITS, 10), ":AA", (URL_SAFE, 33))),
    _formed("discord_bot_token", "Discord bot token", _token("MT", (ALNUM, 24), ".G", (ALNUM, 5), ".", (URL_SAFE, 38))),
    _formed("digitalocean_token", "DigitalOcean token", _token("do" + "p_v1_", (HEX, 64))),
    _formed("vault_token", "Vault token", _token("hv" + "s.", (URL_SAFE, 95))),
    _formed("shopify_token", "Shopify token", _token("shp" + "at_", (HEX, 32))),
    _formed("linear_api_key", "Linear key", _token("lin" + "_api_", (ALNUM, 40))),
    _formed("notion_token", "Notion token", _token("nt" + "n_", (DIGITS, 11), (ALNUM, 35))),
    _formed("grafana_token", "Grafana token", _token("gl" + "sa_", (ALNUM, 32), "_", (HEX, 8))),
    _formed("new_relic_key", "New Relic key", _token("NR" + "AK-", (_CODE, 27))),
    _formed("postman_api_key", "Postman key", _token("PM" + "AK-", (HEX, 24), "-", (HEX, 34))),
    _formed("age_key", "age key", _token("AGE-SECRET" + "-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))),
    _formed(
        "onepassword_key",
        "1Password key",
        _token("A" + "3-", (_CODE, 6), "-", (_CODE, 11), "-", (_CODE, 5), "-", (_CODE, 5), "-", (_CODE, 5)),
    ),
    _formed("atlassian_token", "Jira token", _token("ATATT" + "3xFfGF0", (URL_SAFE, 176), "=", (_CODE, 8))),
    _formed("doppler_token", "Doppler token", _token("dp" + ".pt.", (ALNUM, 43))),
    _formed("sentry_dsn", "Sentry DSN", _sentry),
    _formed("authorization", "header", _basic),
    _named("okta_api_token", "Okta token", _token("00", (URL_SAFE, 40))),
    _named("datadog_api_key", "Datadog key", _token((HEX, 32))),
    _named("heroku_api_key", "Heroku key", _uuid),
    _named("twilio_auth_token", "Twilio auth token", _token((HEX, 32))),
    _named("cloudflare_api_token", "Cloudflare token", _token((URL_SAFE, 40))),
    _named("client_secret", "client secret", _token((ALNUM, 32))),
    _named("db_password", "password", _plain_password),
    _named("cookie", "session cookie", _after_prefix("sessionid=", (LOWER + DIGITS, 32))),
    _formed("card_number", "card", _card),
    _formed("iban", "IBAN", _iban),
    _formed("resident_number", "resident number", _resident_number),
    _formed("ssn", "social security number", _social_security),
    _formed("client_ip", "IPv6 address", _ipv6),
    _formed("email", "address", _email),
    _formed("phone", "phone", _phone),
)
