"""The public surface: names come when they are asked for, and nothing heavy before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mosaic


def test_every_public_name_is_there():
    for name in mosaic.__all__:
        assert getattr(mosaic, name) is not None
        assert name in dir(mosaic)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'mosaic' has no attribute 'MOSIAC'"):
        _ = mosaic.MOSIAC


def test_import_alone_brings_nothing_heavy():
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import mosaic, mosaic.cli, sys; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "[]"
