"""Tests that a state directory is used by one process at a time, and only by the worker that wrote its state."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rocksdict import Rdict
from tests.support.workers import ROOT

from traceweir.streams.worker.runtime.state_directory import LAYOUT, MARK, StateDirectoryError, claimed

APPLICATION = "traceweir.assemble"


def write_mark(folder: Path, **changes: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(
        json.dumps({"format": LAYOUT, "application": APPLICATION, "partitions": 4} | changes), encoding="utf-8"
    )


def test_a_new_state_directory_is_created_marked_and_reused(tmp_path: Path) -> None:
    folder = tmp_path / "state" / APPLICATION
    with claimed(folder, APPLICATION, 4):
        pass
    assert json.loads((folder / MARK).read_bytes()) == {"format": LAYOUT, "application": APPLICATION, "partitions": 4}
    with claimed(folder, APPLICATION, 4):
        pass


def modes(folder: Path) -> set[str]:
    """Returns the modes of a folder and of everything in it."""
    return {oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))}


@pytest.fixture
def common_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    assert os.umask(before) == 0o022  # the claim restores the umask


@pytest.mark.usefixtures("common_umask")
def test_only_the_user_of_the_worker_can_read_the_state(tmp_path: Path) -> None:
    with claimed(tmp_path / "state" / APPLICATION, APPLICATION, 4):
        (tmp_path / "state" / APPLICATION / "tables").mkdir()
        database = Rdict(str(tmp_path / "state" / APPLICATION / "tables" / "0"))
        database["key"] = "text of an agent"
        database.close()
    assert modes(tmp_path / "state") == {"0o700", "0o600"}


@pytest.mark.usefixtures("common_umask")
def test_an_existing_state_directory_loses_the_rights_of_other_users(tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir()
    with claimed(tmp_path / "wide", APPLICATION, 4):
        assert modes(tmp_path / "wide") == {"0o700", "0o600"}


def test_a_wide_state_directory_of_another_user_is_warned_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid + 1)
    with claimed(tmp_path, APPLICATION, 4):
        pass
    assert "(mode 755)" in caplog.text
    assert "TRACEWEIR_STATE_DIR" in caplog.text


def test_a_state_directory_without_a_mark_is_adopted(tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    with claimed(tmp_path, APPLICATION, 4):
        assert (tmp_path / MARK).exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": LAYOUT + 1}, rf"a newer Traceweir \(format {LAYOUT + 1}; this version reads 1 to {LAYOUT}\): run that version, set"),
        ({"format": 0}, r"written by an older Traceweir \(format 0; "),
        ({"application": "other.score"}, r"belongs to the application 'other.score', not to 'traceweir.assemble': set TRACEWEIR_STATE_DIR"),
        ({"partitions": 8}, r"topics with 8 partitions, and TRACEWEIR_PARTITIONS is 4: .* so set it back; or, .* delete"),
        ({"format": "one"}, r"state.json cannot be read, .*: delete .*: the worker rebuilds it from the changelog"),
    ],
)  # fmt: skip
def test_a_state_directory_of_another_worker_is_rejected_with_the_remedy(
    changes: dict[str, object], sentence: str, tmp_path: Path
) -> None:
    write_mark(tmp_path, **changes)
    before = (tmp_path / MARK).read_bytes()
    with pytest.raises(StateDirectoryError, match=sentence), claimed(tmp_path, APPLICATION, 4):
        pass
    assert (tmp_path / MARK).read_bytes() == before


def test_a_state_directory_with_an_incomplete_mark_is_rejected(tmp_path: Path) -> None:
    (tmp_path / MARK).write_bytes(b'{"format": 1, "appl')
    with pytest.raises(StateDirectoryError, match="cannot be read"), claimed(tmp_path, APPLICATION, 4):
        pass


@pytest.mark.slow
def test_a_state_directory_has_one_process_and_is_free_after_the_process_is_killed(tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from traceweir.streams.worker.runtime.state_directory import claimed\n"
        f"with claimed(Path({str(tmp_path)!r}), {APPLICATION!r}, 4): print('mine', flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True, cwd=ROOT) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mine\n"
        with (
            pytest.raises(StateDirectoryError, match=rf"{tmp_path} is in use by another worker: set a separate"),
            claimed(tmp_path, APPLICATION, 4),
        ):
            pass
        holder.kill()
        holder.wait()
    with claimed(tmp_path, APPLICATION, 4):
        pass


def test_a_child_process_does_not_keep_the_lock_of_its_parent(tmp_path: Path) -> None:
    with claimed(tmp_path, APPLICATION, 4):
        child = subprocess.Popen(
            [sys.executable, "-c", "print('here', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
    with child, claimed(tmp_path, APPLICATION, 4):
        assert child.poll() is None
        child.kill()


def test_a_path_that_cannot_be_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(
            StateDirectoryError,
            match=r"file/state cannot be written \(Not a directory\): correct its permissions, free disk space",
        ),
        claimed(tmp_path / "file" / "state", APPLICATION, 4),
    ):
        pass
