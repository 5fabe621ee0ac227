"""Nobody ever sees half a file: what is written gets its name when all of it is there."""

import csv
import datetime
import json
import os
from decimal import Decimal

import pyarrow as pa
import pytest

from mosaic.exceptions import SelectionWarning
from mosaic.rows import FileFault, check_output, csv_bytes, read, replacing, write_rows


def table():
    return pa.table(
        {
            "id": ["Ada", 'Max "M", jr.', "=1+1\n"],
            "x": [1.5, None, float("nan")],
            "n": [1, 2, 3],
            "day": pa.array([datetime.date(2024, 1, day) for day in (1, 2, 3)]),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        }
    )


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".feather", ".arrow", ".jsonl"])
def test_rows_that_are_written_can_be_read_again(ending, tmp_path):
    path = tmp_path / f"rows{ending}"
    write_rows(path, table())
    with read(path, id="id", columns=["n"]) as opened:
        rows = opened.cells([0, 1, 2])
        assert rows["id"].to_pylist() == table()["id"].to_pylist()
        assert rows["n"].to_pylist() == [1, 2, 3]
        assert rows["x"].to_pylist()[:2] == [1.5, None]
        assert rows["kind"].to_pylist() == ["a", "b", "a"]
        assert [str(day)[:10] for day in rows["day"].to_pylist()] == ["2024-01-01", "2024-01-02", "2024-01-03"]
        assert ("vector" in opened.columns) == (ending not in (".csv", ".tsv"))
    assert os.listdir(tmp_path) == [path.name]


def test_json_is_a_list_of_records_without_nan(tmp_path):
    odd = table().append_column("price", pa.array([Decimal("1.50")] * 3)).append_column("raw", pa.array([b"\xff"] * 3))
    write_rows(tmp_path / "rows.json", odd)
    records = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert [record["x"] for record in records] == [1.5, None, None]
    assert records[2]["id"] == "=1+1\n"
    assert records[0]["vector"] == [1, 2]
    assert records[0]["price"] == 1.5
    assert records[0]["day"] == "2024-01-01"
    write_rows(tmp_path / "late.jsonl", pa.table({"late": pa.array([2**58], pa.timestamp("us"))}))
    assert "11103-08-29" in (tmp_path / "late.jsonl").read_text()  # which Python does not know


def test_outputs_that_could_not_be_written_are_refused_before_the_work(tmp_path, monkeypatch):
    old = tmp_path / "old.csv"
    old.write_text("old")

    def refused(path, said, remedy, force=False):
        with pytest.raises(FileFault) as caught:
            check_output(path, force)
        assert caught.value.file == str(path)
        assert said in caught.value.fault
        assert remedy in caught.value.remedy

    refused(old, "exists already", "`force=True`")
    check_output(old, True)
    check_output(tmp_path / "new.csv", False)
    check_output(tmp_path / "report.html", False, [".html"])
    refused(tmp_path / "report.html", "ending does not say what", ".parquet")
    refused(tmp_path, "is a folder", "Name a file in it")
    refused(tmp_path / "nowhere" / "new.csv", "does not exist", "mkdir -p")
    refused(old / "new.csv", "does not exist", "mkdir -p")
    for name in ("new.xlsx", "new", "new.npy"):
        refused(tmp_path / name, "ending does not say what", ".parquet")
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(old))
    refused(old, "may not be written to by you", "another file", force=True)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    refused(tmp_path / "new.csv", "may not be written to by you", "another folder")
    monkeypatch.undo()
    with pytest.raises(FileFault, match="its ending does not say what to write"):
        write_rows(tmp_path / "new.html", table())
    with pytest.raises(FileFault, match="exists already"):
        write_rows(old, table())
    assert (os.listdir(tmp_path), old.read_text()) == (["old.csv"], "old")
    with pytest.raises(FileFault, match="exists already"), replacing(tmp_path / "rows.csv"):
        (tmp_path / "rows.csv").write_text("theirs")  # somebody else's, meanwhile
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"old.csv": "old", "rows.csv": "theirs"}


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, SystemExit, OSError(28, "No space left on device")])
def test_whatever_goes_wrong_the_old_file_stays_and_nothing_else(fault, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("old")
    full = isinstance(fault, OSError)
    match = r"rows.csv: cannot be written \(No space left on device\)" if full else None

    def write():
        with replacing(path, force=True) as temporary:
            assert temporary.parent == tmp_path
            temporary.write_text("half")
            raise fault

    with pytest.raises(FileFault if full else fault, match=match):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_rights_and_links_are_kept(tmp_path):
    path, link = tmp_path / "rows.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_rows(link, table(), force=True)
    assert link.is_symlink()
    assert path.read_text().startswith("id,")
    assert path.stat().st_mode & 0o777 == 0o640
    before = os.umask(0o027)
    try:
        write_rows(tmp_path / "new.csv", table())
    finally:
        os.umask(before)
    assert (tmp_path / "new.csv").stat().st_mode & 0o777 == 0o640


def test_csv_holds_what_has_no_text_as_hexadecimal_digits_or_words():
    uuid = pa.array([bytes(range(16))], pa.binary(16))
    uuid = pa.ExtensionArray.from_storage(pa.uuid(), uuid) if hasattr(pa, "uuid") else uuid
    late, fixed = pa.array([2**61], pa.timestamp("us")), pa.array([b"\xfe\xff"], pa.binary(2))
    table = pa.table({"raw": [b"\x00\xff"], "fixed": fixed, "uuid": uuid, "span": [pa.MonthDayNano([1, 2, 3])], "late": late})
    header, row = csv_bytes(table).decode().splitlines()
    assert header == "raw,fixed,uuid,span,late"
    cells = row.split(",")
    assert cells[:2] == ["00ff", "feff"]
    assert cells[2].replace("-", "") == bytes(range(16)).hex()
    assert len(cells) >= 5


FORMULAS = pa.table({"id": ["=1+1", "@x", "+a", "-", "-5", "\tq", "plain", None], "=cmd()": [-1.0, 2, 3, 4, 5, 6, 7, 8]})


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_cells_that_a_spreadsheet_would_compute_are_made_inert_and_told(tmp_path, name):
    with pytest.warns(SelectionWarning, match="5 cells begin with"):
        write_rows(tmp_path / name, FORMULAS, as_written=False)
    with (tmp_path / name).open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="," if name == "a.csv" else "\t")
    assert header == ["id", "'=cmd()"]
    assert [row[0] for row in rows] == ["'=1+1", "'@x", "'+a", "-", "-5", "'\tq", "plain", ""]
    assert float(rows[0][1]) == -1


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([b"=1+1", b"@x"]),
        pa.array([b"=1+1"], pa.large_binary()),
        pa.array([b"=1+1"]).dictionary_encode(),
        pa.array([b"=1+1"], pa.binary(4)),
        pa.array(["＝1+1", "＋1", "－1", "＠x"]),
        pa.array(["\n=1+1", "\r=1"]),
    ],
    ids=["bytes", "large bytes", "categories of bytes", "bytes of one length", "full width", "line breaks"],
)
def test_formulas_in_bytes_or_wide_characters_are_made_inert_too(cells, tmp_path):
    with pytest.warns(SelectionWarning, match=f"{len(cells)} cells? begins? with"):
        write_rows(tmp_path / "a.csv", pa.table({"a": cells}), as_written=False)
    with (tmp_path / "a.csv").open(newline="") as file:
        _, *rows = csv.reader(file)
    assert [row[0][0] for row in rows] == ["'"] * len(cells)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl"])
def test_cells_stay_as_they_are_where_that_is_asked_for_or_no_spreadsheet_reads_them(tmp_path, name):
    write_rows(tmp_path / name, FORMULAS, as_written=name == "a.csv")
    with read(tmp_path / name, columns="=cmd()") as table:
        assert table.cells([0, 1]).column("id").to_pylist() == ["=1+1", "@x"]
