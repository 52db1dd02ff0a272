"""Token providers: Amazon's signer, and those of installed packages."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from traceweir.streams.worker.kafka.errors import TokenError
from traceweir.streams.worker.kafka.token_providers import token_provider


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, name: str = "acme", package: str = "acme"
) -> None:
    """Installs a package that offers a token provider."""
    info = folder / f"{package}_tokens-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}-tokens\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[traceweir.kafka_tokens]\n{name} = {target}\n")
    (folder / "acme_tokens.py").write_text("def token():\n    return 'the-token', 4e9\n\nNOTHING = 1\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "acme_tokens", raising=False)


def test_an_installed_package_offers_a_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "acme_tokens:token")

    assert token_provider("acme")() == ("the-token", 4e9)


@pytest.mark.parametrize(
    ("target", "name", "says"),
    [
        ("acme_tokens:NOTHING", "acme", "acme_tokens:NOTHING of acme-tokens is not a function"),
        ("acme_tokens:missing", "acme", "acme_tokens:missing of acme-tokens cannot be imported: AttributeError"),
        ("acme_tokens:token", "msk_iam", "built-in provider cannot be replaced, but acme-tokens offers one"),
        ("acme_tokens:token", "other", "there is no such provider; .* one of client_credentials, msk_iam, other"),
    ],
)
def test_an_unusable_provider_is_named(
    target: str, name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, target, name)

    with pytest.raises(TokenError, match=says):
        token_provider("msk_iam" if name == "msk_iam" else "acme")


def test_two_packages_with_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "acme_tokens:token")
    install(tmp_path, monkeypatch, "acme_tokens:token", package="other")

    with pytest.raises(TokenError, match="acme-tokens and other-tokens offer one of this name"):
        token_provider("acme")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Sets credentials and no region; nothing of the machine's own is read, and no network is used."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    return monkeypatch


@pytest.fixture
def signed() -> Callable[[], object]:
    pytest.importorskip("aws_msk_iam_sasl_signer", reason="needs Amazon's signer: pip install -e '.[msk]'")
    return token_provider("msk_iam")


def test_amazons_signer_signs_a_token_of_a_quarter_of_an_hour(
    signed: Callable[[], tuple[str, float]], aws: pytest.MonkeyPatch
) -> None:
    aws.setenv("AWS_REGION", "eu-central-1")

    token, expires_at = signed()

    url = urlsplit(base64.urlsafe_b64decode(token + "==").decode())
    assert url.hostname == "kafka.eu-central-1.amazonaws.com"
    assert parse_qs(url.query)["Action"] == ["kafka-cluster:Connect"]
    assert "wJalrXUtnFEMI" not in url.query
    assert 0 < expires_at - time.time() <= 900


def test_msk_without_a_region_names_the_variable(signed: Callable[[], object], aws: pytest.MonkeyPatch) -> None:
    with pytest.raises(TokenError, match="set AWS_REGION"):
        signed()


def test_msk_without_credentials_says_so(signed: Callable[[], object], aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_REGION", "eu-central-1")
    aws.delenv("AWS_ACCESS_KEY_ID")
    aws.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(TokenError, match="found no AWS credentials"):
        signed()


def test_msk_without_the_signer_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)

    with pytest.raises(TokenError, match=r"pip install 'traceweir\[msk\]'"):
        token_provider("msk_iam")()
