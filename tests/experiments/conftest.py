"""What several tests of the experiments need."""

from __future__ import annotations

import pytest

from experiments.datasets import files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of sets, of which nothing is known."""
    monkeypatch.setenv("MOSAIC_DATA", str(tmp_path))
    monkeypatch.setattr(files, "checksums", lambda: {})
    return tmp_path
