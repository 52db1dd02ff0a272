"""Tests that a folder is written as a whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from traceweir.streams.scoring.embedders.making.errors import ModelMakingError
from traceweir.streams.scoring.embedders.making.new_folder import new_folder


def test_the_folder_appears_with_its_files_at_the_end(tmp_path: Path) -> None:
    out = tmp_path / "new" / "model"
    with new_folder(out) as folder:
        (folder / "a").write_text("1")
        assert not out.exists()
    assert (out / "a").read_text() == "1"
    assert [each.name for each in out.parent.iterdir()] == ["model"]


def test_an_empty_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with new_folder(tmp_path / "model") as folder:
        (folder / "a").write_text("1")
    assert (tmp_path / "model" / "a").exists()


def test_a_folder_with_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("1")
    with pytest.raises(ModelMakingError, match=r"the folder is not empty. Name a new folder"), new_folder(tmp_path):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    with pytest.raises(ModelMakingError, match=r"is a file. Name a new folder"), new_folder(tmp_path / "file"):
        pass


def test_a_full_disk_leaves_nothing_and_names_the_way_out(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "half").write_text("1")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(ModelMakingError, match=r"No space left on device.*on a disk with room for the model"),
        new_folder(tmp_path / "model") as folder,
    ):
        write(folder)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_maker_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "model") as folder:
        (folder / "half").write_text(str(1 // 0))
    assert list(tmp_path.iterdir()) == []
