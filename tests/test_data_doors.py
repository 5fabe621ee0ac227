"""Other ways in: workbooks, standard input, results of queries, addresses."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mosaic import MOSAIC
from mosaic.cli import main
from mosaic.exceptions import InvalidInputError
from mosaic.rows import FileFault, read

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"id": [f"r{i}" for i in range(60)], "height": RNG.normal(size=60).round(4), "age": RNG.integers(0, 90, 60)})
FRAME["city"] = RNG.choice(["Bonn", "Ulm"], 60)


class Stream:
    """What a query of some database gives: an Arrow stream and nothing else."""

    def __init__(self, frame: pd.DataFrame):
        self._table = pa.Table.from_pandas(frame, preserve_index=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture
def csv(tmp_path):
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.fixture
def piped(monkeypatch):
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def relation():
    connection = pytest.importorskip("duckdb").connect()
    connection.register("people", pa.Table.from_pandas(FRAME))
    return connection.sql("select * from people")


@pytest.mark.parametrize("stream", [lambda: Stream(FRAME), lambda: pa.Table.from_pandas(FRAME).to_reader(7), relation])
def test_a_stream_gives_the_picks_of_the_file(csv, stream):
    expected, found = MOSAIC(4).fit(csv), MOSAIC(4).fit(stream())
    np.testing.assert_array_equal(found.representative_indices_, expected.representative_indices_)
    assert list(found.feature_names_in_) == list(expected.feature_names_in_)
    np.testing.assert_array_equal(found.predict(stream()), expected.predict(csv))


@pytest.mark.parametrize(
    ("write", "format"),
    [
        (lambda frame: frame.to_csv(index=False).encode(), None),
        (lambda frame: gzip.compress(frame.to_csv(index=False).encode()), "csv.gz"),
        (lambda frame: frame.to_json(orient="records", lines=True).encode(), "jsonl"),
        (lambda frame: frame.to_parquet(), "parquet"),
    ],
    ids=["csv", "csv.gz", "jsonl", "parquet"],
)
def test_standard_input_is_csv_or_what_the_format_says(piped, scratch, write, format):
    piped(write(FRAME))
    with read("-", format=format) as table:
        assert (table.n, table.path) == (60, Path("standard input"))
        assert table.names([3]) == ["r3"]
    assert not list(scratch.iterdir())


def test_the_command_reads_standard_input(piped, tmp_path, capsys):
    piped(FRAME.to_csv(index=False, sep="\t").encode())
    assert main(["select", "-", "--format", "tsv", "-k", "3", "-o", str(tmp_path / "picks.csv"), "-q"]) == 0
    assert len(pd.read_csv(tmp_path / "picks.csv")) == 3


@pytest.mark.parametrize("data", [b"", b"a,b\n1,x\n2,\xff\n"])
def test_a_fault_of_standard_input_names_it(piped, scratch, data):
    piped(data)
    with pytest.raises(FileFault, match=r"^standard input"):
        read("-")
    assert not list(scratch.iterdir())


def test_a_format_tells_what_a_name_does_not(csv):
    odd = csv.rename(csv.with_suffix(".dat"))
    with read(odd, format="csv") as table:
        assert (table.n, table.path) == (60, odd)
    with pytest.raises(FileFault, match=r"people\.dat"):
        read(odd, format="parquet")
    with pytest.raises(InvalidInputError, match="format must be the ending of a known kind"):
        read(odd, format="word")


@pytest.mark.parametrize("address", ["https://example.org/a.csv", "s3://bucket/a.parquet", "gs://b/a.csv"])
def test_an_address_gets_a_sentence_that_says_what_to_do(address, capsys):
    with pytest.raises(FileFault, match="nothing is fetched from the network") as told:
        MOSAIC(3).fit(address)
    assert "Download it first" in str(told.value)
    assert told.value.file == address
    assert main(["select", address, "-k", "3"]) == 3


def workbook(path: Path, sheets: dict[str, list[list[object]]]) -> Path:
    """An .xlsx file with the parts that are read."""
    ns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rels = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

    def cell(value: object) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return "<c/>" if value is None else f"<c><v>{value}</v></c>"

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        names = "".join(f'<sheet name="{name}" sheetId="{i + 1}" r:id="r{i}"/>' for i, name in enumerate(sheets))
        packed.writestr("xl/workbook.xml", f'<workbook {ns} xmlns:r="{rels}"><sheets>{names}</sheets></workbook>')
        link = '<Relationship Id="r{}" Type="{}/{}" Target="{}"/>'.format
        links = "".join(link(i, rels, "worksheet", f"worksheets/sheet{i}.xml") for i in range(len(sheets)))
        packed.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{links}</Relationships>")
        book = link("", rels, "officeDocument", "xl/workbook.xml")
        packed.writestr("_rels/.rels", f"<Relationships>{book}</Relationships>")
        for i, rows in enumerate(sheets.values()):
            body = "".join(f"<row>{''.join(cell(value) for value in row)}</row>" for row in rows)
            packed.writestr(f"xl/worksheets/sheet{i}.xml", f"<worksheet {ns}><sheetData>{body}</sheetData></worksheet>")
    return path


PEOPLE = [list(FRAME.columns), *FRAME.to_numpy().tolist()]


@pytest.mark.skipif(find_spec("python_calamine") is None, reason="workbooks need python-calamine")
class TestWorkbooks:
    def test_the_first_sheet_is_read_as_its_csv_would_be(self, csv, tmp_path):
        file = workbook(tmp_path / "people.xlsx", {"People": PEOPLE, "Other": [["a"], [1]]})
        with read(file) as table, read(csv) as expected:
            assert table.feature_names == expected.feature_names
            np.testing.assert_allclose(table.X, expected.X)
            assert table.cells([5]).to_pydict() == expected.cells([5]).to_pydict()
            assert any("'People'" in note for note in table.notes)
        np.testing.assert_array_equal(MOSAIC(4).fit(file).representative_indices_, MOSAIC(4).fit(csv).representative_indices_)

    def test_a_sheet_is_named_and_others_are_listed(self, tmp_path, capsys):
        file = workbook(tmp_path / "people.xlsx", {"Empty": [], "People": PEOPLE})
        assert main(["select", str(file), "--sheet", "People", "-k", "3", "-o", str(tmp_path / "picks.csv"), "-q"]) == 0
        with pytest.raises(FileFault, match=r"Did you mean 'People'.*Empty, People"):
            read(file, sheet="Peple")
        with pytest.raises(FileFault, match="'Empty' is empty"):
            read(file)

    def test_a_sheet_that_unpacks_to_more_than_the_budget_is_refused(self, tmp_path):
        file = workbook(tmp_path / "bomb.xlsx", {"A": [["a", "b"], *[[1, 2]] * 100_000]})
        with pytest.raises(FileFault, match="unpacks to"):
            read(file, memory_budget=1e6)

    @pytest.mark.parametrize("cut", [30, 400, -50])
    def test_a_damaged_workbook_is_refused(self, tmp_path, cut):
        file = workbook(tmp_path / "people.xlsx", {"People": PEOPLE})
        file.write_bytes(file.read_bytes()[:cut])
        with pytest.raises(FileFault, match="cannot be read"):
            read(file)


def test_a_sheet_of_a_file_without_sheets_is_refused(csv):
    with pytest.raises(FileFault, match="no sheets"):
        read(csv, sheet="A")
