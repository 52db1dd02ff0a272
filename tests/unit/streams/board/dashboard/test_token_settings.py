"""The tokens of the dashboard come from the settings and from a file, and what cannot be used is named without its secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from traceweir.schemas.labels import MAX_NAME_CHARS
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.access import BUILT_IN_NAMES, client_of_token, digest_of
from traceweir.streams.board.dashboard.token_settings import tokens_of

TOKEN = "the-token-of-ana-is-secret"
ANA = {"name": "ana", "right": "label", "sha256": digest_of(TOKEN)}
BEN = {"name": "ben", "right": "admin", "sha256": digest_of("the-token-of-ben-is-secret")}


def settings_of(folder: Path, text: str, **tokens: str) -> Settings:
    file = folder / "tokens.jsonl"
    file.write_text(text, encoding="utf-8")
    return Settings(dashboard_tokens_file=file, **{name: SecretStr(token) for name, token in tokens.items()})  # type: ignore[arg-type]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_the_clients_of_the_file_stand_beside_those_of_the_settings(tmp_path: Path) -> None:
    tokens = tokens_of(settings_of(tmp_path, lines(ANA, BEN) + "\n", dashboard_read_token="a-token-for-reading"))
    found = [(each.name, each.right) for each in tokens.clients]
    assert found == [("read token", "read"), ("ana", "label"), ("ben", "admin")]
    assert tokens.names == BUILT_IN_NAMES | {"ana", "ben"}
    client = client_of_token(TOKEN.encode(), tokens)
    assert client is not None
    assert client.name == "ana"
    assert client_of_token(TOKEN.upper().encode(), tokens) is None
    assert client.digest not in repr(tokens)


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ([], "write a JSON object with exactly the texts"),
        ({"name": "cleo", "right": "label"}, "write a JSON object with exactly the texts"),
        (BEN | {"token": TOKEN}, "write a JSON object with exactly the texts"),
        (BEN | {"sha256": 1234567890123456}, "write a JSON object with exactly the texts"),
        (BEN | {"right": "owner"}, "right: this is none of feedback, read, label, admin"),
        (BEN | {"name": ""}, "name: a name has from 1 to 200 characters"),
        (BEN | {"name": "x" * (MAX_NAME_CHARS + 1)}, "name: a name has from 1 to 200 characters"),
        (BEN | {"name": "ben\n"}, "name: a name has visible characters only"),
        (BEN | {"name": " ben"}, "name: a name has visible characters only"),
        (BEN | {"name": "\u202eneb"}, "name: a name has visible characters only"),
        (BEN | {"name": "label token"}, "name: the dashboard gives this name"),
        (BEN | {"name": "this machine"}, "name: the dashboard gives this name"),
        (BEN | {"name": "ana"}, "name: line 1 has the same name"),
        (BEN | {"name": "Ana"}, "name: line 1 has the same name"),
        (BEN | {"name": "Label  Token"}, "name: the dashboard gives this name"),
        (BEN | {"sha256": ANA["sha256"]}, "sha256: line 1 has the same token"),
        (BEN | {"sha256": TOKEN}, "sha256: write the SHA-256 of the token as 64 small hexadecimal digits"),
        (BEN | {"sha256": ANA["sha256"].upper()}, "sha256: write the SHA-256 of the token"),
    ],
)
def test_a_bad_line_is_named_with_its_file_number_and_rule(tmp_path: Path, bad: Any, rule: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        tokens_of(settings_of(tmp_path, lines(ANA, bad)))
    message = str(caught.value)
    assert f"TRACEWEIR_DASHBOARD_TOKENS_FILE: {tmp_path / 'tokens.jsonl'}, line 2: {rule}" in message
    assert TOKEN not in message
    assert "1234567890123456" not in message
    # A traceback shows it too.
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("text", ["ana,label,0\n", f'{{"name": "ana", "sha256": "{TOKEN}\n', '"x"'])
def test_a_line_that_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSettingsError, match="line 1: write a JSON object") as caught:
        tokens_of(settings_of(tmp_path, text))
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_a_token_lets_nobody_in_by_mistake(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSettingsError, match="has no token: add a line, or unset the variable"):
        tokens_of(settings_of(tmp_path, text))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match=r"absent\.jsonl cannot be read \(No such file"):
        tokens_of(Settings(dashboard_tokens_file=tmp_path / "absent.jsonl"))


def test_one_token_has_one_right(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match="TRACEWEIR_DASHBOARD_TOKEN and that of 'ana' in") as caught:
        tokens_of(settings_of(tmp_path, lines(ANA), dashboard_token=TOKEN))
    assert TOKEN not in str(caught.value)
    same = SecretStr(TOKEN)
    with pytest.raises(InvalidSettingsError, match="are the same token: give each right a token of its own"):
        tokens_of(Settings(dashboard_token=same, dashboard_read_token=same))
