"""A bad file is answered with its name, the line or column, what is wrong, and what to do."""

import csv
import gzip
import io
import pickle
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from pyarrow import feather

from cli_runs import default_signals, environment, run
from mosaic.exceptions import PYTHON, InvalidInputError
from mosaic.rows import FileFault, read
from read_files import BUDGETS, TINY, learned, numbers, write


def fault_of(path, said="", remedy="", **options):
    """The fault of a file, which says what is wrong and what to do."""
    with pytest.raises(FileFault) as caught, read(path, **options) as table:
        learned(table)
    fault = caught.value
    assert isinstance(fault, InvalidInputError)
    where = f", {fault.where}" if fault.where else ""
    assert str(fault) == f"{fault.file}{where}: {PYTHON(fault.fault)}. {PYTHON(fault.remedy)}"
    assert " --" not in str(fault).replace("git lfs pull --include", "")  # options are for the command to print
    assert "\n" not in str(fault)
    assert "traceback" not in str(fault).lower()
    assert said in fault.fault
    assert remedy in fault.remedy
    return fault


@pytest.mark.parametrize("file", sorted((Path(__file__).parent / "damaged").iterdir()), ids=lambda file: file.name)
def test_files_that_crashed_a_library_are_refused(file):
    fault_of(file)


LONG = "a,b\n" + "1,2\n" * 400_000
CSV = {
    "empty": (b"", None, "the file is empty", "Write it again"),
    "blank": ("\n \n\n", None, "nothing but empty lines", "Write it again"),
    "header only": ("a,b\n", None, "has a header and no rows", "with its rows"),
    "too long a line": ("a,b\n\n1,2\n3,4,5\n", "line 4", "has 3 cells instead of 2", "quotation marks"),
    "ragged after a break": ('a,b\n1,"x\ny"\n3\n', "line 4", "has 1 cell instead of 2, as the header has", "Correct the line"),
    "ragged without header": ("1,2\n3,4\n5\n", "line 3", "as the first line has", "Correct the line"),
    "ragged far down": (LONG + "3\n", "line 400,002", "has 1 cell instead of 2", "Correct the line"),
    "quote at the end": ('a,b\n1,2\n3,"4\n', "line 3", "quotation mark is opened and not closed", "Close it"),
    "quote without a line break": ('a,b\n1,2\n3,"say ""no""', "line 3", "quotation mark is opened and not closed", "Close it"),
    "quote alone": ('a,b\n1,2\n3,"', "line 3", "quotation mark is opened and not closed", "Close it"),
    "quote of the last column": ('a\n1\n"2\n', "line 3", "quotation mark is opened and not closed", "Close it"),
    "open quote": ('a,b\n1,2\n"3,4\n5,6\n', "line 3", "quotation mark is opened and not closed", "Close it"),
    "endless quote": ('a,b\n1,2\n"3,4\n' + "5,6\n" * 2_000_000, "line 3", "not closed", "Close it"),
    "binary": (b"a,b\n1,\x00\x01\xff\n", "line 2", "binary file", ".parquet or .npy"),
    "text only": (
        "a,b\nx,y\nz,w\n",
        None,
        "no column of numbers to compare rows by; it has a (String), b (String)",
        "Convert columns",
    ),
    "same names": ("a,b,a\n1,2,3\n", None, "more than one column called 'a'", "Rename"),
    "git lfs": ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", None, "pointer of Git LFS", "git lfs pull"),
}


@BUDGETS
@pytest.mark.parametrize("case", CSV)
def test_a_bad_text_table_says_where_and_why(case, budget, tmp_path, scratch):
    content, where, said, remedy = CSV[case]
    path = write(tmp_path, content)
    fault = fault_of(path, said, remedy, memory_budget=budget)
    assert (fault.file, fault.where) == (str(path), where)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("last", ['"4"', '"4""', '"""', '""', '"a\n"', '4"', '4"5', '"x,""y"', "'4", '"\n"', '""""'])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_an_open_quotation_mark_at_the_end_is_refused_and_no_other_text(last, end, ending, tmp_path):
    text = f"a,b\n1,two\n3,{last}{end}"
    write(tmp_path, gzip.compress(text.encode()) if ending == "csv.gz" else text, f"t.{ending}")
    try:
        expected = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        fault_of(tmp_path / f"t.{ending}", "quotation mark is opened and not closed")
        return
    with read(tmp_path / f"t.{ending}") as rows:
        assert rows.table.texts("b") == [record[1] for record in expected[1:] if record]


OPTIONS = {
    "columns": ({"columns": ["hieght"]}, None, "has no column 'hieght' (`columns`)", "Did you mean 'height'?"),
    "pattern": ({"columns": ["gene_*"]}, None, "has no column 'gene_*'", "It has id, height, city"),
    "exclude": ({"exclude_columns": ["x"]}, None, "has no column 'x' (`exclude_columns`)", "It has"),
    "id": ({"id": "Id"}, None, "has no column 'Id' (`id`)", "Did you mean 'id'?"),
    "group": ({"group": "town"}, None, "has no column 'town' (`group`)", "It has"),
    "weight": ({"weight": "city"}, "column 'city'", "weights must be numbers", "another column"),
    "negative": ({"weight": "w"}, "line 3, column 'w'", "a weight is -1", "0 or larger"),
    "all out": ({"exclude_columns": ["height", "w"]}, None, "no column of numbers to compare rows by", "Convert"),
    "embedding": ({"embedding": "city"}, "column 'city'", "no lists of numbers (`embedding`)", "column of lists"),
    "array": ({"array": "X"}, None, "`array` means nothing for this kind of file", "Leave it out"),
}


@BUDGETS
@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_do_not_fit_the_file_say_what_there_is(case, budget, tmp_path):
    options, where, said, remedy = OPTIONS[case]
    path = write(tmp_path, "id,height,city,w\na,1.7,Ulm,1\nb,1.8,Rome,-1\n")
    assert fault_of(path, said, remedy, **options, memory_budget=budget).where == where


def test_ids_that_are_named_must_tell_rows_apart(tmp_path):
    pq.write_table(pa.table({"k": [1, 2, 1], "x": [1.0, 2, 3]}), tmp_path / "t.parquet")
    for path, where, said in (
        (write(tmp_path, "k,x\na,1\n\nb,2\na,3\n", "a.csv"), "line 5, column 'k'", "'a' is also the id of line 2"),
        (write(tmp_path, "k,x\na,1\n,2\n", "b.csv"), "line 3, column 'k'", "has no value"),
        (tmp_path / "t.parquet", "row 2 (counted from 0), column 'k'", "row 0"),
    ):
        assert fault_of(path, said, id="k").where == where


def test_a_number_far_down_that_is_none_is_found_in_a_stream(tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.rows.text_tables.PARSED_BYTES", 1 << 16)
    many = "a,b\n" + "1,2\n3,5\n4,1.5\n" * 33_333 + "1.5,2\n"
    for gap in ("", " NA "):
        with read(write(tmp_path, many + f"1,2\n{gap},4\n"), memory_budget=TINY) as table:
            assert learned(table).names == ["a", "b"]
            assert (numbers(table)[:, 1] > 0).nonzero()[0].tolist() == [100_001]  # says what is missing of a
    with read(write(tmp_path, many + "twelve,4\n"), memory_budget=TINY) as table:
        assert (numbers(table)[:, 1] > 0).nonzero()[0].tolist() == [100_000]
    assert fault_of(write(tmp_path, many + "7\n"), "has 1 cell instead of 2", memory_budget=TINY).where == "line 100,002"


@BUDGETS
def test_missing_numbers_are_encoded_and_so_are_infinite_ones_with_a_note(budget, tmp_path):
    pq.write_table(pa.table({"a": [1.0, float("inf"), 3, 9], "b": [1, 7, 2, 2]}), tmp_path / "t.parquet")
    feather.write_feather(pq.read_table(tmp_path / "t.parquet"), str(tmp_path / "t.feather"))
    for name in ("t.feather", "t.parquet"):
        with read(tmp_path / name, memory_budget=budget) as table:
            assert learned(table).notes[0] == "1 cell of 'a' is infinite and counts as missing: row 1 (counted from 0)."
            assert np.flatnonzero(numbers(table)[:, 1]).tolist() == [1]
    pq.write_table(pa.table({"a": [1.0, 4, 3], "b": [1, None, 3]}), tmp_path / "t.parquet")
    with read(tmp_path / "t.parquet", memory_budget=budget) as table:
        assert learned(table).names == ["a", "b"]
        assert np.isfinite(numbers(table)).all()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"x": 1}\n{"x": \n', "Invalid value. in row 1"),
        ('{"x": 1}\n\n{"x": "one"}\n', "Column(/x) changed from number to string in row 1"),
        ("[1, 2]\n", "Column() changed from object to array"),
        (b'{"n": "\xc3\xb6\xfc", "x": 1}\n', "is not UTF-8"),
        ('{"v": [1, 2]}\n', "no column of numbers"),
        ("\n\n", "has no records"),
        *(pytest.param(('{"a": ' * n + "1" + "}" * n + "\n") * 3, "is nested too deeply", id=f"{n} levels") for n in (300, 3000)),
    ],
)
@BUDGETS
def test_bad_json_lines_say_where(content, said, budget, tmp_path):
    fault_of(write(tmp_path, content, "bad.jsonl"), said, memory_budget=budget)


@BUDGETS
def test_columns_of_lists_are_embeddings_of_one_length_or_nothing_to_compare_by(budget, tmp_path):
    path = write(tmp_path, '{"v": [1.5, 2]}\n{"v": [3]}\n{"v": null}\n', "v.jsonl")
    fault = fault_of(path, "has 1 numbers, other rows have 2", embedding="v", memory_budget=budget)
    assert fault.where == "row 1 (counted from 0), column 'v'"
    path = write(tmp_path, '{"v": ["a"], "x": 1}\n', "v.jsonl")
    fault_of(path, "no lists of numbers", embedding="v", memory_budget=budget)
    table, path = pa.table({"x": [1.0], "v": [[1.0]], "s": [["a"]], "t": ["a"]}), tmp_path / "t.parquet"
    pq.write_table(table, path)
    said = "cannot be compared by (`columns`)"
    assert fault_of(path, said, "`embedding`", columns=["s"], memory_budget=budget).where == "column 's'"
    assert fault_of(path, "no lists of numbers", embedding="s", memory_budget=budget).where == "column 's'"
    pq.write_table(table.select(["v"]), path)
    fault_of(path, remedy="`embedding='v'`", memory_budget=budget)


@pytest.mark.parametrize(
    ("array", "said", "remedy"),
    [
        (np.array([[1, "a"]], dtype=object), "must hold real numbers; got dtype object", "Convert"),
        (np.array([["a", "b"]]), "must hold real numbers; got dtype <U1", "Convert"),
        (np.arange(3.0), "two dimensions (points × features); got shape (3,)", "reshape(-1, 1)"),
        (np.zeros((0, 3)), "at least one point and one feature; got shape (0, 3)", "Save it again"),
    ],
    ids=["objects", "strings", "one dimension", "no rows"],
)
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_arrays_that_are_no_tables_of_numbers_are_refused(array, said, remedy, ending, tmp_path):
    path = tmp_path / f"bad{ending}"
    (np.save if ending == ".npy" else np.savez)(path, array)
    assert fault_of(path, said, remedy).file == str(path)


@BUDGETS
def test_files_without_rows_are_refused(budget, tmp_path):
    nothing = pa.table({"x": pa.array([], pa.float64())})
    feather.write_feather(nothing, str(tmp_path / "x.feather"))
    pq.write_table(nothing, tmp_path / "x.parquet")
    for path in (tmp_path / "x.feather", tmp_path / "x.parquet", write(tmp_path, "a,b\n" + "\n" * 300_000)):
        fault_of(path, "no rows", memory_budget=budget)
    fault_of(write(tmp_path, b"FEA1" + bytes(40), "old.feather"), "cannot be read", memory_budget=budget)


CUT = {
    "x.npy": lambda path: np.save(path, np.ones((100, 3))),
    "x.npz": lambda path: np.savez(path, np.ones((100, 3))),
    "x.parquet": lambda path: pq.write_table(pa.table({"x": np.ones(100)}), path),
    "x.feather": lambda path: feather.write_feather(pa.table({"x": np.ones(100)}), str(path)),
    "x.h5ad": lambda path: pytest.importorskip("anndata") and path.write_bytes(bytes(100)),
    "x.csv.gz": lambda path: path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 9000)),
    "x.jsonl.gz": lambda path: path.write_bytes(gzip.compress(b'{"x": 1}\n' * 9000)),
}


@pytest.mark.parametrize("name", CUT)
def test_files_that_are_cut_off_or_not_what_their_ending_says_are_refused(name, tmp_path):
    CUT[name](tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    for content in (whole[: len(whole) // 2], b"\x93garbage\x01\x02" * 9):
        fault = fault_of(write(tmp_path, content, name))
        assert fault.file == str(tmp_path / name)
        assert fault.remedy.endswith(".")


#: A command that says when libhdf5 begins to read.
READING = """
import sys
import h5py
from mosaic.cli import main

def file(path, mode, opened=h5py.File):
    print("reading", flush=True)
    return opened(path, mode)

h5py.File = file
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_command_that_a_damaged_file_keeps_busy(name, tmp_path):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("anndata")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = np.zeros((2, 2))
        file.create_group("obs").attrs["encoding-type"] = "dataframe"
    content = bytearray((tmp_path / "x.h5ad").read_bytes())
    content[content.index(b"GCOL") + 24] = 1  # the length of a text, which libhdf5 looks for without end
    (tmp_path / "x.h5ad").write_bytes(content)
    words = [sys.executable, "-c", READING, "select", str(tmp_path / "x.h5ad"), "-q"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with default_signals(), subprocess.Popen(words, env=environment(), **pipes) as child:
        try:
            assert child.stdout.readline() == "reading\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(2)
            child.send_signal(getattr(signal, name))
            child.wait(60)
        finally:
            child.kill()
    assert child.returncode == -getattr(signal, name)


def test_texts_whose_lengths_are_wrong_are_refused(tmp_path):
    offsets = pa.py_buffer(np.array([0, 3, 1_000_000, 4], np.int32))
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abcd")])
    table = pa.table({"t": texts, "x": [1.0, 2.0, 3.0]})
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    fault_of(tmp_path / "x.arrow", "cannot be read")


@pytest.mark.parametrize(("part", "value"), [("indices", 10**6), ("indices", -7), ("indptr", 10**6)])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_indices_out_of_range_are_refused(tmp_path, part, value, form, capsys):
    S = sp.random_array((40, 4), density=0.5, format=form, rng=0)
    getattr(S, part)[1:] = value
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape, "format": form.encode()}
    np.savez(tmp_path / "x.npz", **parts)
    assert run(capsys, "select", tmp_path / "x.npz", "-k", "3").code == 3


def test_a_message_is_cut_short_and_has_no_control_characters(tmp_path, capsys):
    ran = run(capsys, "select", write(tmp_path, "a,b\n1,2\n"), "--id", "q" * 33_000)
    assert (ran.code, len(ran.err) < 2000) == (3, True)
    file = tmp_path / "x\x1b[31m\u202e.csv"
    ran = run(capsys, "select", file, "-k", "3")
    assert (ran.code, r"x\x1b[31m\u202e.csv" in ran.err) == (3, True)
    with pytest.raises(FileFault) as told:
        read(file)
    assert str(told.value).isprintable()


def test_what_is_no_file_of_rows_says_why(tmp_path):
    write(tmp_path, "a\n1\n", "points.csv")
    fault_of(tmp_path / "pionts.csv", "no such file", "Did you mean 'points.csv'?")
    fault_of(tmp_path / "nowhere" / "points.csv", remedy="folder")
    fault_of("/dev/null", "neither a file nor a folder", "Save")
    (tmp_path / "folder").mkdir()
    fault_of(tmp_path / "folder", "the folder is empty")
    write(tmp_path / "folder", "x", "letter.doc")
    fault_of(tmp_path / "folder", "letter.doc", ".png")
    (tmp_path / "parts").mkdir()
    pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), tmp_path / "parts" / "0.parquet")
    pq.write_table(pa.table({"a": [1.0], "c": [2.0]}), tmp_path / "parts" / "1.parquet")
    assert fault_of(tmp_path / "parts", "b, c").file == str(tmp_path / "parts" / "1.parquet")
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(np.ones((100, 3))))
    fault_of(tmp_path / "x.npz", remedy="`memory_budget`", memory_budget=1000)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("points.docx", "not known"),
        ("points", "without an ending"),
        ("points.npy.gz", "not known"),
        ("points.foo.gz", "not known"),
    ],
)
def test_endings_that_say_nothing_are_answered_with_those_that_do(name, said, tmp_path):
    fault = fault_of(write(tmp_path, "a\n1\n", name), said, ".csv")
    assert ".parquet" in fault.remedy


def test_files_of_others_are_refused_with_how_to_get_them(tmp_path, monkeypatch):
    path = write(tmp_path, "a\n1\n")

    def closed(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", closed)
    fault_of(path, "permission denied", "chmod u+r")


def png(width, height):
    """The beginning of a picture that claims to be large."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk)) + b"\0\0\0\0IDAT"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not a picture", "cannot be read as a picture"),
        (png(8, 8), "cannot be read as a picture"),
        (png(11_000, 11_000), "decompression bomb"),
        (png(60_000, 60_000), "decompression bomb"),
    ],
    ids=["garbage", "cut off", "large", "bomb"],
)
def test_a_broken_picture_is_named(content, said, tmp_path):
    pytest.importorskip("PIL")
    write(tmp_path, content, "bad.png")
    assert fault_of(tmp_path, said, "remove it").file == f"{tmp_path}/bad.png"


def test_a_disk_that_is_full_sooner_than_thought_says_so_and_is_tidied_up(tmp_path, scratch, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    said = f"its numbers cannot be laid out in {scratch} (No space left on device)"
    fault_of(write(tmp_path, "a,b\n" + "1,2\n" * 1000), said, "TMPDIR", memory_budget=TINY)
    assert not list(scratch.iterdir())


def test_faults_travel_between_processes():
    fault = FileFault("people.csv", "is odd.", "Mend it.", line=1234, column="age", where="page 2")
    same = pickle.loads(pickle.dumps(fault))
    assert str(same) == str(fault) == "people.csv, page 2, line 1,234, column 'age': is odd. Mend it."
    assert vars(same) == vars(fault)
