"""Damaged and hostile files are refused with a line that names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from mosaic.cli import main
from mosaic.rows import FileFault, read

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
#: Files that crashed the libraries that read them.
FOUND = sorted((Path(__file__).parent / "damaged").iterdir())


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.name)
def test_files_that_crashed_a_library_are_refused(file):
    with pytest.raises(FileFault):
        read(file)


# ----------------------------------------------------------------------------------------------------------------- Arrow


def test_texts_whose_lengths_are_wrong_are_refused(tmp_path):
    offsets = pa.py_buffer(np.array([0, 3, 1_000_000, 4], np.int32))
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abcd")])
    table = pa.table({"t": texts, "x": [1.0, 2.0, 3.0]})
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(FileFault, match="cannot be read"):
        read(tmp_path / "x.arrow")


# ---------------------------------------------------------------------------------------------------------------- sparse


@pytest.mark.parametrize("change", [{"indices": 10**6}, {"indices": -7}, {"indptr": 10**6}], ids=["beyond", "negative", "rows"])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_indices_out_of_range_are_refused(tmp_path, change, form, capsys):
    S = getattr(sp.coo_array(X * (X > 0)), f"to{form}")()
    for name, value in change.items():
        getattr(S, name)[1:] = value
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape, "format": form.encode()}
    np.savez(tmp_path / "x.npz", **parts)
    assert main(["select", str(tmp_path / "x.npz"), "-k", "3"]) == 3


# ------------------------------------------------------------------------------------------------------------------ HDF5


# -------------------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize("bits", [16, 32])
def test_wide_encodings_are_called_by_their_names(tmp_path, bits):
    (tmp_path / "x.csv").write_bytes("a,b\n1,2\n".encode(f"utf-{bits}"))
    with pytest.raises(FileFault, match=f"UTF-{bits}.*as UTF-8"):
        read(tmp_path / "x.csv")


def test_a_message_is_cut_short(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert main(["select", str(tmp_path / "x.csv"), "--id", "q" * 33_000]) == 3
    assert len(capsys.readouterr().err) < 2000


def test_control_characters_of_names_are_written_out(tmp_path, capsys):
    file = tmp_path / "x\x1b[31m\u202e.csv"
    assert main(["select", str(file), "-k", "3"]) == 3
    assert r"x\x1b[31m\u202e.csv" in capsys.readouterr().err
    with pytest.raises(FileFault) as told:
        read(file)
    assert str(told.value).isprintable()
