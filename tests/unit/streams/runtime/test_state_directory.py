"""Tests that a state directory is used by one process at a time, and only by the worker that wrote its state."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.workers import ROOT

from traceweir.streams.runtime.lane import FORMAT_ROW, Lane
from traceweir.streams.runtime.state_directory import FORMAT, MARK, StateDirectoryError, check_format, claimed
from traceweir.streams.testing import MemoryTable

APPLICATION = "traceweir.assemble"


def write_mark(folder: Path, **changes: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(
        json.dumps({"format": FORMAT, "application": APPLICATION, "partitions": 4} | changes), encoding="utf-8"
    )


def test_a_new_state_directory_is_created_marked_and_reused(tmp_path: Path) -> None:
    folder = tmp_path / "state" / APPLICATION
    with claimed(folder, APPLICATION, 4):
        pass
    assert json.loads((folder / MARK).read_bytes()) == {"format": FORMAT, "application": APPLICATION, "partitions": 4}
    with claimed(folder, APPLICATION, 4):
        pass


def test_a_state_directory_without_a_mark_is_adopted(tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    with claimed(tmp_path, APPLICATION, 4):
        assert (tmp_path / MARK).exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": FORMAT + 1}, rf"a newer Traceweir \(format {FORMAT + 1}; this version reads 1 to {FORMAT}\): run that version, set"),
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


def test_a_state_directory_has_one_process_and_is_free_after_the_process_is_killed(tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from traceweir.streams.runtime.state_directory import claimed\n"
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


# --- format of the rows


def test_rows_of_a_newer_format_are_rejected_when_their_partition_is_assigned() -> None:
    table = MemoryTable()
    table.write(3, [(FORMAT_ROW, b"%d" % (FORMAT + 1))])
    with pytest.raises(
        StateDirectoryError,
        match=rf"the state of partition 3, in changelog, was written by a newer .*\(format {FORMAT + 1};",
    ):
        Lane(3, [], table, {}, 100.0)


def test_a_format_older_than_the_oldest_readable_format_is_rejected() -> None:
    check_format(FORMAT, "it")
    with pytest.raises(StateDirectoryError, match=r"it was written by an older Traceweir \(format 0"):
        check_format(0, "it")
