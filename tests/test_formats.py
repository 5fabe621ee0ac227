"""Formats of every day: the same rows give the same picks and outliers, however they are written, packed and brought here."""

import codecs
import gzip
import io
import lzma
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest

from cli_runs import environment, in_terminal, run
from mosaic import datasets
from mosaic.exceptions import InvalidInputError, SelectionWarning
from mosaic.rows import FileFault, read
from read_files import BUDGETS, write

EXAMPLES = Path(__file__).parents[1] / "examples"
X = datasets.blobs_with_gross_outliers().X
FRAME = pd.DataFrame({"id": [f"p{i}" for i in range(len(X))], "x": X[:, 0].round(4), "y": X[:, 1].round(4)})
FRAME["city"] = np.random.default_rng(0).choice(["Köln", "Ulm", "Tromsø"], len(X))
TEXT = FRAME.to_csv(index=False)
RECORDS = FRAME.to_json(orient="records", force_ascii=False)


def archive(files: dict[str, str | bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as into:
        for name, text in files.items():
            into.writestr(name, text)
    return packed.getvalue()


def sheets() -> bytes:
    """An OpenDocument file with the parts that are read."""
    names = ("office", "table", "text")
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names)

    def cell(value: object) -> str:
        kind = 'string"' if isinstance(value, str) else f'float" office:value="{value}"'
        return f'<table:table-cell office:value-type="{kind}><text:p>{value}</text:p></table:table-cell>'

    rows = [list(FRAME.columns), *FRAME.to_numpy().tolist()]
    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    table = f'<table:table table:name="People">{body}</table:table>'
    content = f"<office:document-content {spaces}><office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as into:
        into.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        into.writestr("content.xml", f"{content}</office:document-content>")
        into.writestr("META-INF/manifest.xml", "<manifest/>")
    return packed.getvalue()


FORMATS = {
    "utf8 with a mark.csv": TEXT.encode("utf-8-sig"),
    "latin1.csv": TEXT.encode("latin1"),
    "latin1.csv.gz": gzip.compress(TEXT.encode("latin1")),
    "latin1.jsonl": FRAME.to_json(orient="records", lines=True, force_ascii=False).encode("latin1"),
    "utf16.csv": TEXT.encode("utf-16"),
    "utf32.csv": TEXT.encode("utf-32"),
    "of Excel.txt": TEXT.replace(",", "\t").encode("utf-16"),
    "semicolons.csv": FRAME.to_csv(index=False, sep=";", decimal=",").encode(),
    "bars.txt": TEXT.replace(",", "|").encode(),
    "packed.csv.xz": lzma.compress(TEXT.encode()),
    "packed.json.xz": lzma.compress(RECORDS.encode()),
    "packed.zip": archive({"people.csv": TEXT, "__MACOSX/people.csv": "x"}),
    "of pandas.zip": archive({"people": TEXT}),
    "list.json": f"\n {RECORDS}".encode(),
    "list with a mark.json": RECORDS.encode("utf-8-sig"),
    "lines.json": FRAME.to_json(orient="records", lines=True).encode(),
    "people.ods": sheets(),
}
if find_spec("python_calamine") is None:
    FORMATS.pop("people.ods")
pytestmark = pytest.mark.filterwarnings("ignore:.*is not UTF-8:mosaic.exceptions.SelectionWarning")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, TEXT, "people.csv")
    return tmp_path


def found(capsys, file, *options):
    """The ids of picks and of outliers by the command, which writes them in the dialect of the file."""
    ids = []
    for words in (["select", file, "-k", 6], ["outliers", file]):
        ran = run(capsys, *words, "-q", "-o", "-", *options)
        assert ran.code == 0, ran.err
        ids.append([re.split(r"[,;|\t]", line)[0] for line in ran.out.splitlines()[1:]])
    assert len(ids[1]) >= 8
    return ids


@pytest.mark.parametrize("name", FORMATS)
def test_picks_and_outliers_are_those_of_the_plain_file(name, here, capsys, scratch):
    expected = found(capsys, "people.csv")
    assert found(capsys, write(here, FORMATS[name], name)) == expected
    assert not list(scratch.iterdir())


@BUDGETS
@pytest.mark.parametrize("name", [name for name in FORMATS if not re.search("list|json.xz|ods", name)])  # are read at once
def test_cells_are_those_that_were_written_however_large_the_file_is(name, budget, here, scratch):
    with read(write(here, FORMATS[name], name), memory_budget=budget) as rows:
        assert rows.path == here / name
        pd.testing.assert_frame_equal(rows.cells(np.arange(rows.n)).to_pandas(), FRAME, check_dtype=False)
    assert not list(scratch.iterdir())


def test_a_guess_of_the_encoding_is_told_with_a_word_and_a_name_is_believed(here, capsys):
    write(here, TEXT.encode("latin1"), "latin1.csv")
    with pytest.warns(SelectionWarning, match=r"is not UTF-8 .* Windows-1252.*'(Köln|Tromsø)'.*name it with `?encoding"):
        read("latin1.csv").close()
    assert "'. If it is another one, name it with --encoding." in run(capsys, "select", "latin1.csv", "-k", 3).err
    write(here, TEXT.replace("Köln", "Киев").replace("ø", "o").encode("cp1251"), "russian.csv")
    with read("russian.csv", encoding="cp1251") as rows:
        assert "Киев" in rows.table.texts("city")
    assert "Киев".encode() in subprocess.run(
        [sys.executable, "-m", "mosaic", "outliers", "russian.csv", "--encoding", "cp1251", "-q"],
        env=environment(), check=True, capture_output=True,
    ).stdout  # fmt: skip
    with pytest.raises(FileFault, match=r"latin1\.csv, line 2: byte .* is not UTF-8. Name the encoding"):
        read("latin1.csv", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"encoding .*no encoding.*'klingon'"):
        read("people.csv", encoding="klingon")
    np.save("points.npy", X)
    with pytest.raises(FileFault, match="encoding means nothing for this kind of file"):
        read("points.npy", encoding="cp1251")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"n,x\nK\xc3\xb6ln,1\nK\xf6ln,2\n", "line 3.*0xf6.*is not UTF-8.*what is before it is UTF-8"),
        (b"n,x\nK\x81ln,1\n", "cannot be read"),  # no letter of Windows-1252
        ("n,x\nK,1\n".encode("utf-16-le"), "zero bytes.*name the encoding"),
    ],
)
def test_a_text_in_two_encodings_or_in_none_is_refused(data, said, here):
    with pytest.raises(FileFault, match=said):
        read(write(here, data, "odd.csv"))
    with read(write(here, "n,x\nK,1\nL,2\n".encode("utf-16-le"), "odd.csv"), encoding="utf-16-le") as rows:
        assert rows.table.texts("n") == ["K", "L"]


def test_what_cannot_be_unpacked_says_why(here, scratch):
    for name, data, said in (
        ("two.zip", archive({"a.csv": TEXT, "b.csv": "x"}), r"has 2 files .*: a\.csv, b\.csv.*\(unzip -p two\.zip a\.csv \|"),
        ("twice.zip", archive({"people.zip": archive({"people.csv": TEXT})}), r"twice\.zip: is packed more than once"),
        ("none.zip", archive({}), "has 0 files"),
        ("cut.zip", archive({"people.csv": TEXT})[:-40], r"cut\.zip: cannot be read"),
        ("letter.zip", archive({"letter.doc": "x"}), r"letter\.zip: files that end in '\.doc' are not known"),
        ("cut.csv.xz", lzma.compress(TEXT.encode())[:-40], r"cut\.csv\.xz: cannot be read"),
        ("ragged.csv.xz", lzma.compress(b"a,b\n1,2\n1,2,3\n"), r"ragged\.csv\.xz, line 3: has 3 cells"),
        ("numbers.json", b"[1, 2]", "no list of records.*to_json"),
        ("cut.json", RECORDS[:-40].encode(), "cannot be read.*to_json"),
        ("infinite.json", b'[{"a": Infinity}]', "Infinity"),
    ):  # fmt: skip
        with pytest.raises(FileFault, match=said) as told:
            read(write(here, data, name))
        assert told.value.file == str(here / name)
    with pytest.raises(FileFault, match=r"jq -c '\.\[\]' list\.json \| mosaic select - --format jsonl"):
        read(write(here, RECORDS, "list.json"), memory_budget=1000)
    with read(write(here, '[{"a": 1.5}, {"a": NaN}, {}]', "gaps.json")) as rows:
        assert rows.cells([0, 1, 2]).to_pydict() == {"a": [1.5, None, None]}
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("text", "columns", "first"),
    [
        ("The cat sat.\nWho, where, when?\n\nNobody knows\n", ["text"], ["The cat sat."]),
        ('"Yes," she said.\nand left; then, "no"\nagain\n', ["text"], ['"Yes," she said.']),
        ("1.5 2\n3 4\n5 6\n", ["x0", "x1"], [1.5, 2]),
        ("a b\n3 4\n5 6\n", ["a", "b"], [3, 4]),
        ("height\n3\n5\n", ["height"], [3]),
    ],
)
@BUDGETS
def test_a_txt_file_is_a_table_or_lines_of_text(text, columns, first, budget, here):
    with read(write(here, text, "some.txt"), memory_budget=budget) as rows:
        assert (rows.n, rows.columns) == (len(text.split("\n")) - 2 if columns in (["a", "b"], ["height"]) else 3, columns)
        assert list(rows.cells([0]).to_pylist()[0].values()) == first
        assert any("Every line is a text" in note for note in rows.notes) == (columns == ["text"])


@BUDGETS
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_pattern_stands_for_its_files_in_the_order_of_their_names(ending, budget, here, capsys):
    (here / "parts").mkdir()
    frame = FRAME.assign(age=np.where(np.arange(len(FRAME)) < 300, np.arange(len(FRAME)), 0.5))
    whole = frame.astype({"age": int})  # the last file has a column of another kind than the first one
    for i, part in enumerate((whole[:150], whole[150:300], frame[300:])):
        file = here / "parts" / f"{i}.{ending}"
        part.to_parquet(file, index=False) if ending == "parquet" else part.to_csv(file, index=False)
    with read(f"parts/*.{ending}", memory_budget=budget) as rows:
        pd.testing.assert_frame_equal(rows.cells(np.arange(rows.n)).to_pandas(), frame, check_dtype=False)
    frame.to_csv("whole.csv", index=False)
    assert found(capsys, f"parts/*.{ending}") == found(capsys, "whole.csv")
    assert "is the input, too" in run(capsys, "select", f"parts/*.{ending}", "-o", f"parts/1.{ending}", "-f").err


def test_each_file_of_a_pattern_has_an_encoding_of_its_own(here):
    for name, encoding in {"1.csv": "utf-8", "2.csv": "utf-16", "3.csv": "cp1252"}.items():
        write(here, f"n,x\nKöln {name},1\n".encode(encoding), name)
    with pytest.warns(SelectionWarning, match="3.csv is not UTF-8"), read("?.csv") as rows:
        assert rows.table.texts("n") == ["Köln 1.csv", "Köln 2.csv", "Köln 3.csv"]


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
def test_a_file_with_nothing_but_the_mark_of_its_encoding_is_empty(mark, here):
    with pytest.raises(FileFault, match=r"odd\.csv: holds nothing but empty lines"):
        read(write(here, mark, "odd.csv"))


def test_patterns_that_cannot_be_read_say_why(here, capsys):
    texts = {"a1": "x,y\n1,2\n", "a2": "x,z\n1,2\n", "b1": "x;y\n1,5;2\n", "b2": "x,y\n1.5,2\n", "[odd]": "x,y\n1,2\n2,3\n"}
    texts |= {"e1": "x,y\n1,2\n", "e2": "x,y\n1,2,3\n", "k1": "n,x\nKöln,1\n"}
    texts["k2"] = b"n,x\n" + b"Ulm,1\n" * 100_000 + b"K\xf6ln,1\n"
    for name, text in texts.items():
        write(here, text, f"{name}.csv")
    (here / "folder").mkdir()
    for name in ("c.jsonl", "d.jsonl"):
        write(here, '{"x": 1}\n', name)
    for pattern, said in (
        ("z*.csv", r"z\*\.csv: no file has a name like this\. Paths are relative to"),
        ("fol*", r"no file has a name like this"),
        ("a*.csv", r"a2\.csv: has other columns .* than a1\.csv: x, z"),
        ("b*.csv", r"b2\.csv: has other columns or another decimal sign"),
        ("[cd].jsonl", "neither text tables nor Parquet"),
        ("[ac]*", "is of another kind than"),
        ("k*.csv", r"k2\.csv, line 100,002: byte .* is not UTF-8. Name the encoding"),
        ("e*.csv", r"e2\.csv, line 2: has 3 cells"),
    ):
        with pytest.raises(FileFault, match=said):
            read(pattern)
    ran = run(capsys, "select", "")
    assert (ran.code, "'': is the name of no file" in ran.err) == (3, True)
    with read("[odd].csv") as rows:  # the name of a file comes first
        assert rows.n == 2
    ran = run(capsys, "select", "a1.csv", "a2.csv")
    assert (ran.code, "patterns such as '*.csv' in quotes" in ran.err) == (2, True)


def test_a_named_pipe_is_read_and_written(here, capsys, scratch):
    expected = found(capsys, "people.csv")[0]
    for name in ("pipe", "pipe.jsonl"):
        os.mkfifo(name)
        text = FRAME.to_json(orient="records", lines=True) if "json" in name else TEXT
        writing = Thread(target=Path(name).write_text, args=[text, "utf-8"])
        writing.start()
        ran = run(capsys, "select", name, "-k", 6, "-q")
        writing.join()
        assert [line.split(",")[0] for line in ran.out.splitlines()[1:]] == expected
    kept = []
    reading = Thread(target=lambda: kept.append(Path("pipe").read_text("utf-8")))
    reading.start()
    assert run(capsys, "select", "people.csv", "-k", 6, "-q", "-o", "pipe").code == 0
    reading.join()
    assert kept == [run(capsys, "select", "people.csv", "-k", 6, "-q").out]
    assert run(capsys, "select", "people.csv", "-k", 6, "-q", "-o", "/dev/null").code == 0
    assert Path("pipe").is_fifo()
    assert not list(scratch.iterdir())


def test_a_dash_is_standard_output_also_on_a_terminal(here, capsys):
    code, seen = in_terminal([sys.executable, "-m", "mosaic", "select", "people.csv", "-k", "3", "-q", "-o", "-"], here)
    assert (code, seen.replace("\r\n", "\n")) == (0, run(capsys, "select", "people.csv", "-k", 3, "-q").out)
    assert run(capsys, "select", "people.csv", "-o", "-", "--json").code == 4


def test_output_is_written_as_the_input_is(here, capsys):
    whole = FRAME.assign(n=range(len(FRAME)))
    whole.to_csv("german.csv", index=False, sep=";", decimal=",")
    ran = run(capsys, "outliers", "german.csv", "-q", "-o", "odd.csv", "--all")
    assert ran.code == 0
    back = pd.read_csv("odd.csv", sep=";", decimal=",")
    pd.testing.assert_frame_equal(back[list(whole)], whole)
    assert back["mosaic_score"].dtype == float
    assert run(capsys, "outliers", "german.csv", "-q", "--all").out == Path("odd.csv").read_text("utf-8")
    assert run(capsys, "select", "german.csv", "-q", "-o", "odd.tsv").code == 0
    assert pd.read_csv("odd.tsv", sep="\t", decimal=",")["x"].dtype == float
    with read("odd.csv") as rows:  # mosaic reads what it wrote
        assert rows.table.take(np.arange(3), ["x"]).to_pydict()["x"] == whole["x"][:3].tolist()


@pytest.fixture
def mosaic_on_path(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "mosaic"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mosaic "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


def by_pipe(message: str, query: str) -> list[str]:
    """The ids that the pipe in a message gives."""
    pipe = re.search(r"\((.* \| mosaic select -.*)\)", message)[1].replace("select * from …", query)
    done = subprocess.run(["bash", "-o", "pipefail", "-c", f"{pipe} -k 6 -q"], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return [line.split(",")[0] for line in done.stdout.splitlines()[1:]]


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs the command sqlite3")
@pytest.mark.parametrize("address", ["people.db", "sqlite:///people.db", "sqlite:///{here}/of people.sqlite3"])
def test_the_pipe_that_is_named_brings_the_rows_of_sqlite(address, here, capsys, mosaic_on_path):
    address = address.format(here=here)
    with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as base:
        FRAME.to_sql("people", base, index=False)
    ran = run(capsys, "select", address)
    assert ran.code == 3
    assert by_pipe(ran.err, "select * from people") == found(capsys, "people.csv")[0]


@pytest.fixture(scope="module")
def postgres():
    """The address of a database of its own on the loopback."""
    if not all(map(shutil.which, ("initdb", "pg_ctl", "psql"))):
        pytest.skip("needs PostgreSQL")
    folder = tempfile.mkdtemp(prefix="postgres-")
    owner = []
    if os.getuid() == 0:  # it refuses to run as root
        shutil.chown(folder, "postgres")
        owner = ["runuser", "-u", "postgres", "--"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, quiet = f"{folder}/data", {"stdout": subprocess.DEVNULL, "cwd": folder, "check": True}
    options = ["-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
    subprocess.run([*owner, "initdb", "-D", data, *options], **quiet)
    start = ["start", "-w", "-l", f"{folder}/log", "-o", f"-p {port} -h 127.0.0.1 -k ''"]
    subprocess.run([*owner, "pg_ctl", "-D", data, *start], **quiet)
    try:
        yield f"postgresql://tester@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*owner, "pg_ctl", "-D", data, "stop", "-m", "immediate"], **quiet)
        shutil.rmtree(folder)


def test_the_pipe_that_is_named_brings_the_rows_of_postgresql(postgres, here, capsys, mosaic_on_path):
    made = "create table people (id text, x double precision, y numeric, city text); copy people from stdin csv header"
    subprocess.run(["psql", postgres, "-q", "-c", made.split(";")[0], "-c", made.split("; ")[1]], input=TEXT.encode(), check=True)
    ran = run(capsys, "select", postgres)
    assert ran.code == 3
    assert by_pipe(ran.err, "select * from people order by substr(id, 2)::int") == found(capsys, "people.csv")[0]


@pytest.mark.parametrize(
    ("address", "pipe"),
    [
        ("s3://bucket/a.parquet", r"\(aws s3 cp s3://bucket/a\.parquet - \| mosaic select - --format parquet\)"),
        ("https://example.org/a.csv?x=1&y", r"\(curl -sSfL 'https://example\.org/a\.csv\?x=1&y' \| mosaic select -\)"),
        ("mysql://me@there/shop", r"\(… \| mosaic select -\)"),
        ("gs://b/a.csv", r"\(gcloud storage cat gs://b/a\.csv \| mosaic select -\)"),
        ("duckdb:///x.duckdb", r"\(duckdb -csv x\.duckdb 'select \* from …' \| mosaic select -\)"),
    ],
)
def test_an_address_is_refused_with_the_pipe_that_brings_its_rows(address, pipe):
    with pytest.raises(FileFault, match=f"nothing is fetched from there.*{pipe}") as told:
        read(address)
    assert told.value.file == address


@pytest.mark.slow
def test_the_example_of_many_formats_runs(tmp_path, mosaic_on_path):
    done = subprocess.run(["sh", EXAMPLES / "formats.sh", tmp_path / "formats"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("the same picks") == 14
