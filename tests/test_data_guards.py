"""Files that crash or hang the libraries that read them: they are refused with a line, and the process lives on."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from mosaic.cli import main
from mosaic.data import FileFault, guards, open_table

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
#: Files that crashed or stopped the libraries that read them.
FOUND = sorted((Path(__file__).parent / "damaged").iterdir())


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.name)
def test_files_that_end_or_stop_a_library_are_refused(file):
    with pytest.raises(FileFault):
        open_table(file)


# --------------------------------------------------------------------------------------------------------- Matrix Market


def mtx(folder, body, head="coordinate real general", sizes="3 3 2"):
    file = folder / "x.mtx"
    file.write_bytes(f"%%MatrixMarket matrix {head}\n% a comment\n\n{sizes}\n".encode() + body)
    return file


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"1 1 1.5\0\0\0\n2 2 2.5\n", 5),
        (b"1 1 1.5\n2 2 2.x\n", 6),
        (b"1 1 1.5\n2 2\n", 6),
        (b"1 1 1.5 7\n2 2 1\n", 5),
        (b"1 1 1.5\n\n2 -2 1\n", 7),
        (b"1 1 0x10\n2 2 1\n", 5),
    ],
)
def test_a_line_of_a_matrix_that_is_not_what_its_header_announces_is_named(tmp_path, body, line):
    with pytest.raises(FileFault, match="is not what the header announces") as told:
        open_table(mtx(tmp_path, body))
    assert told.value.line == line


@pytest.mark.parametrize("values", [sp.coo_array(X * (X > 0)), X, sp.coo_array((X > 0).astype(int))], ids=type)
def test_matrices_that_scipy_writes_are_read(tmp_path, values):
    scipy.io.mmwrite(tmp_path / "x.mtx", values)
    packed = tmp_path / "y.mtx.gz"
    packed.write_bytes(gzip.compress((tmp_path / "x.mtx").read_bytes()))
    expected = values.toarray() if sp.issparse(values) else values
    for file in (tmp_path / "x.mtx", packed):
        with open_table(file) as table:
            np.testing.assert_allclose(table.X.toarray() if sp.issparse(table.X) else table.X, expected)


def test_numbers_in_all_ways_of_writing_are_read(tmp_path):
    with open_table(mtx(tmp_path, b"1 1 1e3\r\n 2\t2 -.5E-1 \n\n3 3 7.\n", sizes="3 3 3")) as table:
        assert table.X.diagonal().tolist() == [1000, -0.05, 7]


@pytest.mark.parametrize("sizes", ["5 2000000000 3", "500000000 3 3", "1000000000000 3 3"])
def test_a_matrix_of_very_many_rows_or_columns_is_refused_before_it_is_read(tmp_path, sizes):
    with pytest.raises(FileFault, match="more than half of the memory budget"):
        open_table(mtx(tmp_path, b"1 1 1.0\n2 2 1.0\n3 3 2.0\n", sizes=sizes))


# ------------------------------------------------------------------------------------------------------------ JSON lines


def test_json_that_is_nested_deeply_is_refused(tmp_path):
    lines = ['{"a": 1, "b": 2}', '{"a": ' + "[" * 20_000 + "]" * 20_000 + ', "b": 1}']
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    with pytest.raises(FileFault, match="brackets within brackets") as told:
        open_table(tmp_path / "x.jsonl")
    assert told.value.line == 2


def test_brackets_in_texts_count_for_nothing(tmp_path):
    texts = ["[" * 500, "]" * 500, '"[' * 200, "\\" * 7 + "[" * 300, "{\n"]
    rows = [{"t": text, "x": i * i % 7, "y": float(i)} for i, text in enumerate(texts * 3)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with open_table(tmp_path / "x.jsonl", columns=["x", "y"]) as table:
        assert table.n == 15


def test_a_bracket_for_each_line_is_deep_too(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a":\n' + "[\n" * 20_000 + "]\n" * 20_000 + "}\n")
    with pytest.raises(FileFault, match="does not end on the line that it begins on"):
        open_table(tmp_path / "x.jsonl")


# ----------------------------------------------------------------------------------------------------------------- Arrow


def test_texts_whose_lengths_are_wrong_are_refused(tmp_path):
    offsets = pa.py_buffer(np.array([0, 3, 1_000_000, 4], np.int32))
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abcd")])
    table = pa.table({"t": texts, "x": [1.0, 2.0, 3.0]})
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(FileFault, match="cannot be read"):
        open_table(tmp_path / "x.arrow")


# ---------------------------------------------------------------------------------------------------------------- sparse


@pytest.mark.parametrize(
    "change", [{"indices": 10**6}, {"indices": -7}, {"indptr": 10**6}], ids=["beyond", "negative", "rows"]
)
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_indices_out_of_range_are_refused(tmp_path, change, form, capsys):
    S = getattr(sp.coo_array(X * (X > 0)), f"to{form}")()
    for name, value in change.items():
        getattr(S, name)[1:] = value
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape, "format": form.encode()}
    np.savez(tmp_path / "x.npz", **parts)
    assert main(["select", str(tmp_path / "x.npz"), "-k", "3"]) == 3


# ------------------------------------------------------------------------------------------------------------------ HDF5


@pytest.fixture
def annotated(tmp_path):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(X=sp.csr_array(X * (X > 0))).write_h5ad(tmp_path / "x.h5ad")
    return tmp_path / "x.h5ad"


@pytest.mark.parametrize("what", ["X", "obs", "X/data"])
def test_a_link_to_another_file_is_not_followed(annotated, tmp_path, what, capsys):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "secret.h5", "w") as other:
        other["numbers"] = X
    with h5py.File(annotated, "r+") as store:
        del store[what]
        if what == "X/data":
            (tmp_path / "raw").write_bytes(X.tobytes())
            store.create_dataset(what, (160,), "f8", external=[(str(tmp_path / "raw"), 0, X.nbytes)])
        else:
            store[what] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/numbers")
    assert main(["select", str(annotated), "-k", "3"]) == 3
    assert "leads to another file" in capsys.readouterr().err


def test_an_array_that_was_never_written_is_refused(annotated):
    h5py = pytest.importorskip("h5py")
    with h5py.File(annotated, "r+") as store:
        del store["X"]
        store.create_dataset("X", shape=(10**9, 1000), chunks=(1000, 1000), dtype="f8")
    with pytest.raises(FileFault, match="claims to hold"):
        open_table(annotated)


@pytest.mark.parametrize("what", ["import os; os.abort()", "while True: pass", "raise SystemExit(5)"])
def test_a_file_that_breaks_its_library_is_refused(annotated, monkeypatch, tmp_path, what):
    script = tmp_path / "walk.py"
    script.write_text(f"import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n{what}")
    monkeypatch.setattr(guards.hdf5_walk, "__file__", str(script))
    with pytest.raises(FileFault, match="the HDF5 library crashes on it"):
        open_table(annotated)


def test_a_whole_file_is_walked_through(annotated):
    walk = [sys.executable, "-P", guards.hdf5_walk.__file__, str(annotated), "5", str(1 << 31)]
    assert subprocess.run(walk, check=False).returncode == 0
    with open_table(annotated) as table:
        assert table.n == 40


# ----------------------------------------------------------------------------------------------------------------- bombs


def test_text_that_is_packed_more_tightly_than_any_table_is_refused(tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5_000_000))
    with pytest.raises(FileFault, match="more than 200 times as much"):
        open_table(tmp_path / "x.csv.gz", memory_budget=20e6)


def test_a_header_that_asks_for_more_memory_than_there_is_is_a_fault_of_the_file(tmp_path, capsys):
    (tmp_path / "x.npz").write_bytes(b"")
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x02\x00" + b"\xff" * 4 + b"{")
    code = main(["select", str(tmp_path / "x.npy"), "-k", "3"])
    said = capsys.readouterr().err
    assert code == 3
    assert "()" not in said


# -------------------------------------------------------------------------------------------------------------- messages


def test_a_long_line_is_called_so(tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.data.csv_files.LONGEST_ROW", 1 << 16)
    monkeypatch.setattr("mosaic.data.csv_files.PARSED_BYTES", 1 << 14)
    (tmp_path / "x.csv").write_bytes(b"a,b,t\n1,2,x\n" * 2 + b"4,1," + b"z" * 200_000 + b"\n5,2,x\n")
    with pytest.raises(FileFault, match="the line is longer than") as told:
        open_table(tmp_path / "x.csv")
    assert told.value.line == 5


@pytest.mark.parametrize("bits", [16, 32])
def test_wide_encodings_are_called_by_their_names(tmp_path, bits):
    (tmp_path / "x.csv").write_bytes("a,b\n1,2\n".encode(f"utf-{bits}"))
    with pytest.raises(FileFault, match=f"UTF-{bits}.*iconv -f utf-{bits}"):
        open_table(tmp_path / "x.csv")


def test_a_message_is_cut_short(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert main(["select", str(tmp_path / "x.csv"), "--id", "q" * 33_000]) == 3
    assert len(capsys.readouterr().err) < 2000


def test_control_characters_of_names_are_written_out(tmp_path, capsys):
    file = tmp_path / "x\x1b[31m\u202e.csv"
    assert main(["select", str(file), "-k", "3"]) == 3
    assert r"x\x1b[31m\u202e.csv" in capsys.readouterr().err
    with pytest.raises(FileFault) as told:
        open_table(file)
    assert str(told.value).isprintable()
