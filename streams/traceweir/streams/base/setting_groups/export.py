"""Defines the settings of `traceweir export`."""

from __future__ import annotations

import base64
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from traceweir.streams.base.setting_groups.group import Seconds, SettingGroup

_WEBHOOK_SECRET_BYTES = range(24, 65)
"""Sizes that the specification Standard Webhooks allows."""


class ExportSettings(SettingGroup):
    """Holds which text leaves with scores, and where webhooks go."""

    export_content: Literal["redacted", "full", "none"] = "redacted"
    """How much text of agents and judges `traceweir export` sends (rationales, details, labels): `redacted` without
    secrets and identifiers, `full`, or `none`."""
    export_give_up_after_s: Seconds = 259_200.0
    """Seconds for which a score is sent again that its target does not take; then it is a dead letter `given_up`.
    Three days."""
    webhook_url: SecretStr | None = None
    """Address, http or https, to which `traceweir export webhook` posts. Never printed, as it can contain a secret."""
    webhook_secret: SecretStr | None = None
    """Secret that signs its events: 24 to 64 bytes in base64; during a change the new and the old one, with a space
    between. Never printed."""
    webhook_timeout_s: Seconds = 15.0
    """Seconds that the receiver has for an event, from the connection to the answer."""
    webhook_connections: Annotated[int, Field(ge=1, le=256)] = 8
    """Connections to the receiver. Events of one session go one after another."""

    @field_validator("webhook_url")
    @classmethod
    def _is_an_http_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not _is_http_url(url.get_secret_value()):
            raise ValueError("the value (not shown) is no address; for example https://receiver.example/traceweir")
        return url

    @field_validator("webhook_secret")
    @classmethod
    def _is_one_secret_or_two(cls, secrets: SecretStr | None) -> SecretStr | None:
        if secrets is not None:
            found = secrets.get_secret_value().split(" ")
            if len(found) > 2 or not all(map(_is_webhook_secret, found)):
                raise ValueError(
                    "the value (not shown) must be one secret, or two with a space between: each from 24 to 64 bytes in "
                    "base64; for example the output of `openssl rand -base64 32`"
                )
        return secrets


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        # A port out of range, or half an IPv6 address.
        return False


def _is_webhook_secret(text: str) -> bool:
    try:
        return len(base64.b64decode(text.removeprefix("whsec_"), validate=True)) in _WEBHOOK_SECRET_BYTES
    except ValueError:
        return False
