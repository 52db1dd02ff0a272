"""Defines the settings of the connection to Kafka: address, login, certificates, compression."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, FilePath, SecretStr, field_validator

from traceweir.schemas.text import printable
from traceweir.streams.base.setting_groups.group import SettingGroup, env

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CLIENT_CREDENTIALS = "client_credentials"
"""The provider of tokens that asks a token endpoint; every other one has a function of its own."""


def _usable_as_path(path: str | Path) -> str | Path:
    try:
        os.stat(path)
    except OSError as error:
        # pydantic's own check of a file raises this error.
        if error.errno == errno.ENAMETOOLONG:
            raise ValueError(f"a path of {len(str(path))} characters is too long; name a PEM file") from None
    return path


PemFile = Annotated[FilePath, BeforeValidator(_usable_as_path)]


class KafkaSettings(SettingGroup):
    """Holds how the process reaches Kafka."""

    kafka_bootstrap_servers: str = "127.0.0.1:9092"
    """Brokers to contact first: `host:port`, separated by commas, without user and password. Without any
    `TRACEWEIR_KAFKA_...`, commands use the embedded broker of the user's running `traceweir up`, and say so."""
    kafka_security_protocol: SecurityProtocol = "PLAINTEXT"
    """`PLAINTEXT`, `SSL` (TLS), `SASL_PLAINTEXT` (login without TLS) or `SASL_SSL` (login with TLS)."""
    kafka_sasl_mechanism: SaslMechanism = "PLAIN"
    """With a SASL protocol only: `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512` by user and password, `OAUTHBEARER` by
    token."""
    kafka_sasl_username: str | None = None
    """User name. Required for a login by password, refused otherwise."""
    kafka_sasl_password: SecretStr | None = None
    """Password, likewise. Never printed."""
    kafka_oauth_provider: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = CLIENT_CREDENTIALS
    """What issues tokens for `OAUTHBEARER`: `client_credentials` (a token endpoint), `msk_iam` (Amazon MSK, the extra
    `[msk]`), or an installed package's [provider](kafka.md#login-by-token-sasl-oauthbearer)."""
    kafka_oauth_token_endpoint: Annotated[str, Field(pattern=r"^https?://[^\s/@?#]+(/[^\s?#]*)?$")] | None = None
    """Address of the OAuth 2 token endpoint, without user, password and query. This and the next two are required for
    `client_credentials`, and refused otherwise."""
    kafka_oauth_client_id: Annotated[str, Field(min_length=1)] | None = None
    """Id of the OAuth client."""
    kafka_oauth_client_secret: Annotated[SecretStr, Field(min_length=1)] | None = None
    """Secret of the OAuth client; either this or the file. Never printed."""
    kafka_oauth_client_secret_file: Annotated[FilePath, BeforeValidator(_usable_as_path)] | None = None
    """File with the secret in place of the variable, read for each token, so that a new secret needs no restart."""
    kafka_oauth_scope: Annotated[str, Field(min_length=1)] | None = None
    """Scopes to ask for, separated by spaces. Unset: the endpoint's default."""
    kafka_ssl_cafile: PemFile | None = None
    """PEM file with the authorities that sign the brokers' certificates. Unset: those of the system."""
    kafka_ssl_certfile: PemFile | None = None
    """PEM file with this client's certificate, for mutual TLS. Requires the key file."""
    kafka_ssl_keyfile: PemFile | None = None
    """PEM file with its unencrypted private key."""

    kafka_compression: Compression = "none"
    """How written records are compressed, changelogs included: `none`, `gzip`, `snappy`, `lz4` or `zstd` ([what it
    saves](kafka.md#compression-and-racks)). Every codec is read."""
    kafka_client_rack: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Rack or availability zone of this process, to [read from a replica there](kafka.md#compression-and-racks).
    Unset: from the leader."""

    @property
    def kafka_uses_tokens(self) -> bool:
        """Whether Kafka's clients log in by token."""
        return self.kafka_security_protocol.startswith("SASL_") and self.kafka_sasl_mechanism == "OAUTHBEARER"

    @field_validator("kafka_bootstrap_servers")
    @classmethod
    def _name_hosts_and_ports(cls, servers: str) -> str:
        if "@" in servers:
            raise ValueError(
                "the value (not shown) contains @, and cannot contain a user or a password: write host:port only, and set "
                f"{env('kafka_sasl_username')}, {env('kafka_sasl_password')} and {env('kafka_security_protocol')}=SASL_SSL"
            )
        for server in servers.split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
                raise ValueError(f"{printable(server.strip(), 100)!r} is not host:port; for example 127.0.0.1:9092")
        return servers

    def kafka_problems(self) -> list[str]:
        """Returns a sentence for each setting that contradicts the protocol or another one."""
        protocol = f"{env('kafka_security_protocol')}={self.kafka_security_protocol}"
        tls_files = (self.kafka_ssl_cafile, self.kafka_ssl_certfile, self.kafka_ssl_keyfile)
        tls = self.kafka_security_protocol.endswith("SSL")
        problems = self._login_problems(protocol)
        if not tls and tls_files != (None, None, None):
            problems.append(
                f"TLS files are not used with {protocol}; set the protocol to SSL or SASL_SSL, or unset the files"
            )
        if (self.kafka_ssl_certfile is None) != (self.kafka_ssl_keyfile is None):
            problems.append(
                f"{env('kafka_ssl_certfile')} and {env('kafka_ssl_keyfile')} go together; one is missing, set both or none"
            )
        return problems

    def _login_problems(self, protocol: str) -> list[str]:
        """Returns a sentence for each setting that the login by SASL lacks or does not use."""
        user = env("kafka_sasl_username")
        password = env("kafka_sasl_password")
        credentials = (self.kafka_sasl_username, self.kafka_sasl_password)
        sasl = self.kafka_security_protocol.startswith("SASL_")
        problems = []
        if self.kafka_uses_tokens:
            if credentials != (None, None):
                problems.append(
                    f"{user} and {password} are not used with {env('kafka_sasl_mechanism')}=OAUTHBEARER; unset both, or set "
                    "another mechanism"
                )
        elif sasl and None in credentials:
            problems.append(f"{protocol} requires both {user} and {password}; set both")
        elif not sasl and credentials != (None, None):
            problems.append(
                f"{user} and {password} are not used with {protocol}; set the protocol to SASL_SSL, or unset both"
            )
        return problems + self._token_problems()

    def _token_problems(self) -> list[str]:
        secrets = ("kafka_oauth_client_secret", "kafka_oauth_client_secret_file")
        required = ("kafka_oauth_token_endpoint", "kafka_oauth_client_id")
        found = [name for name in (*required, *secrets, "kafka_oauth_scope") if getattr(self, name) is not None]
        provider = env("kafka_oauth_provider")
        if not self.kafka_uses_tokens:
            if self.kafka_oauth_provider != CLIENT_CREDENTIALS:
                found.append("kafka_oauth_provider")
            return [
                f"{env(name)} is used only with a SASL protocol and {env('kafka_sasl_mechanism')}=OAUTHBEARER; set both, or "
                "unset it"
                for name in found
            ]
        if self.kafka_oauth_provider != CLIENT_CREDENTIALS:
            return [
                f"{env(name)} is not used with {provider}={self.kafka_oauth_provider}; unset it, or set the provider to "
                f"{CLIENT_CREDENTIALS}"
                for name in found
            ]
        missing = [
            f"{provider}={CLIENT_CREDENTIALS} requires {env(name)}; set it, or name another provider"
            for name in required
            if name not in found
        ]
        if len([name for name in secrets if name in found]) != 1:
            missing.append(
                f"{provider}={CLIENT_CREDENTIALS} requires either {env(secrets[0])} or {env(secrets[1])}; set one"
            )
        return missing
