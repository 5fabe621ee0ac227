"""What several tests of the experiments need."""

import numpy as np
import pytest

from experiments.datasets import files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of sets, of which nothing is known."""
    monkeypatch.setenv("MOSAIC_DATA", str(tmp_path))
    monkeypatch.setattr(files, "checksums", lambda: {})
    return tmp_path


@pytest.fixture
def put(folder, monkeypatch):
    """A function that writes a made-up file, of arrays or as it is, and its entry in the table of checksums."""
    table = {}
    monkeypatch.setattr(files, "checksums", lambda: table)

    def write(file, content=None, **arrays):
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        if content is None:
            np.savez_compressed(path, **arrays)
        else:
            path.write_bytes(content)
        table[file] = files.sha256_of(path)
        return path

    return write
