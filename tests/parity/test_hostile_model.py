"""Tests that an embedding model on this machine cannot bring code along, with the real library."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from traceweir.streams.scoring.embedders.loading import EmbedderUnavailableError, load_embedder

pytestmark = pytest.mark.embeddings


def test_code_in_the_folder_of_a_local_model_is_refused(tmp_path: Path) -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed; `make test-embeddings` installs it and runs this")
    folder, ran = tmp_path / "model", tmp_path / "ran"
    folder.mkdir()
    (folder / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "own_code.Module"}]))
    (folder / "own_code.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    with pytest.raises(EmbedderUnavailableError, match="own_code"):
        load_embedder(str(folder))
    assert not ran.exists()
