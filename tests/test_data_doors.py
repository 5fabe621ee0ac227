"""Other ways in: workbooks, standard input, results of queries, addresses, arrays, cells and pictures."""

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
import scipy.sparse as sp

from mosaic import MOSAIC
from mosaic.cli import main
from mosaic.exceptions import InvalidInputError
from mosaic.rows import FileFault, read
from read_files import BUDGETS, TINY, numbers

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
    piped(write(FRAME))
    assert main(["select", "-", "--format", format or "csv", "-k", "3", "-q"]) == 0


@pytest.mark.parametrize("data", [b"", b"a,b\n1,x\n2,3,4\n"])
def test_a_fault_of_standard_input_names_it(piped, scratch, data):
    piped(data)
    with pytest.raises(FileFault, match=r"^standard input"):
        read("-")
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("path", [{}, 3, None])
def test_what_is_no_name_of_a_file_is_refused(path):
    with pytest.raises(InvalidInputError, match=r"^path must be the name of a file, and is of type"):
        read(path)


def test_a_format_tells_what_a_name_does_not_and_an_address_is_no_name(csv):
    odd = csv.rename(csv.with_suffix(".dat"))
    with read(odd, format="csv") as table:
        assert (table.n, table.path) == (60, odd)
    with pytest.raises(FileFault, match=r"people\.dat"):
        read(odd, format="parquet")
    with pytest.raises(InvalidInputError, match="format must be the ending of a known kind"):
        read(odd, format="word")
    with pytest.raises(FileFault, match="sheet means nothing for this kind of file"):
        read(odd, format="csv", sheet="A")
    for address in ("https://example.org/a.csv", "s3://bucket/a.parquet", "gs://b/a.csv"):
        with pytest.raises(FileFault, match=r"nothing is fetched from there.*\| mosaic select -") as told:
            MOSAIC(3).fit(address)
        assert told.value.file == address


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
            assert table.roles.compared == expected.roles.compared
            np.testing.assert_allclose(numbers(table), numbers(expected))
            assert table.cells([5]).to_pydict() == expected.cells([5]).to_pydict()
            assert any("'People'" in note for note in table.notes)
        np.testing.assert_array_equal(MOSAIC(4).fit(file).representative_indices_, MOSAIC(4).fit(csv).representative_indices_)

    def test_a_sheet_is_named_and_others_are_listed_and_it_fits_into_the_budget(self, tmp_path, capsys):
        file = workbook(tmp_path / "people.xlsx", {"Empty": [], "People": PEOPLE})
        assert main(["select", str(file), "--sheet", "People", "-k", "3", "-o", str(tmp_path / "picks.csv"), "-q"]) == 0
        with pytest.raises(FileFault, match=r"Did you mean 'People'.*Empty, People"):
            read(file, sheet="Peple")
        with pytest.raises(FileFault, match="'Empty' is empty"):
            read(file)
        file = workbook(tmp_path / "bomb.xlsx", {"A": [["a", "b"], *[[1, 2]] * 100_000]})
        with pytest.raises(FileFault, match="unpacks to"):
            read(file, memory_budget=1e6)

    @pytest.mark.parametrize("first", [[], [["Report 2024"]], [["note"], ["Data of May"], ["See there"]]])
    def test_a_first_sheet_without_numbers_names_the_others(self, first, tmp_path):
        file = workbook(tmp_path / "people.xlsx", {"Read me": first, "People": PEOPLE, "Old": PEOPLE})
        with pytest.raises(FileFault, match=r"Or name another sheet \(sheet\): People, Old\."):
            MOSAIC(3).fit(file)
        with pytest.raises(FileFault, match=r"has no column 'wieght' .*Or name another sheet \(sheet\): Read me, Old\."):
            read(file, sheet="People", weight="wieght")
        with read(file, sheet="People") as rows:
            assert len(MOSAIC(3).fit(rows).representative_indices_) == 3

    @pytest.mark.parametrize("cut", [30, 400, -50])
    def test_a_damaged_workbook_is_refused(self, tmp_path, cut):
        file = workbook(tmp_path / "people.xlsx", {"People": PEOPLE})
        file.write_bytes(file.read_bytes()[:cut])
        with pytest.raises(FileFault, match="cannot be read"):
            read(file)


def test_npy_files_are_mapped_and_their_features_are_columns(tmp_path, rng):
    X = rng.normal(size=(5, 3))
    np.save(tmp_path / "x.npy", X)
    with read(tmp_path / "x.npy", memory_budget=400) as mapped, read(tmp_path / "x.npy") as table:
        assert isinstance(mapped.array, np.memmap)
        assert not isinstance(table.array, np.memmap)  # a small file may be cut off meanwhile
        assert (table.kind, table.columns) == ("NumPy array", ["x0", "x1", "x2"])
        np.testing.assert_array_equal(table.cells([4, 0])["x2"], X[[4, 0], 2])
    np.save(tmp_path / "wide.npy", rng.normal(size=(5, 51)))
    with read(tmp_path / "wide.npy") as table:
        assert table.columns == []
        assert table.cells([1, 2, 1]).append_column("rank", pa.array([1, 2, 3]))["rank"].to_pylist() == [1, 2, 3]


def test_npz_files_give_their_one_table_or_the_one_that_is_named(tmp_path, rng):
    np.savez(tmp_path / "one.npz", X=np.eye(3), labels=np.arange(3))
    np.savez_compressed(tmp_path / "two.npz", X=np.eye(3), Y=np.ones((2, 2), np.float32))
    with read(tmp_path / "one.npz") as table:
        np.testing.assert_array_equal(numbers(table), np.eye(3))
    with read(tmp_path / "two.npz", array="Y") as table:
        assert table.array.dtype == np.float32
        np.testing.assert_array_equal(numbers(table), np.ones((2, 2)))
    for options, fault in (
        ({"array": "Y", "memory_budget": TINY}, r"more than half of the memory budget.*\.npy"),
        ({}, r"X \(3, 3\), Y \(2, 2\).*with array"),
        ({"array": "Z"}, "has no array 'Z'"),
    ):
        with pytest.raises(FileFault, match=fault):
            read(tmp_path / "two.npz", **options)
    X = sp.random_array((20, 60), density=0.1, rng=rng, format="csc")
    sp.save_npz(tmp_path / "x.npz", X)
    with read(tmp_path / "x.npz") as table:
        assert table.array.format == "csr"
        np.testing.assert_allclose(table.array.toarray(), X.toarray(), rtol=1e-15)
        assert MOSAIC(n_representatives=2).fit(table.array).n_features_in_ == 60


def annotated(rng, matrix=sp.csr_matrix):
    anndata = pytest.importorskip("anndata")
    counts = rng.poisson(1.0, (6, 5))
    return anndata.AnnData(
        X=matrix(counts.astype(np.float32)),
        obs=pd.DataFrame({"type": pd.Categorical(list("aabbcc")), "depth": np.arange(6.0)}, index=[f"cell{i}" for i in range(6)]),
        var=pd.DataFrame(index=[f"gene{j}" for j in range(5)]),
        layers={"counts": counts},
        obsm={"X_pca": rng.normal(size=(6, 2))},
    )


@BUDGETS
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_cells_are_named_and_their_observations_are_columns(budget, tmp_path, rng):
    data = annotated(rng)
    data.write_h5ad(tmp_path / "cells.h5ad")
    with read(tmp_path / "cells.h5ad", group="type", weight="depth", memory_budget=budget) as table:
        np.testing.assert_array_equal(table.array.toarray() if budget is None else numbers(table), data.X.toarray())
        assert table.array_names == [f"gene{j}" for j in range(5)]
        assert table.names([5]) == ["cell5"]
        assert table.columns == ["obs_names", "type", "depth"]
        assert table.cells([2])["type"].to_pylist() == ["b"]
        assert table.groups.tolist() == list("aabbcc")
        assert table.weights.tolist() == list(range(6))
    for array, expected in (("layers/counts", data.layers["counts"]), ("obsm/X_pca", data.obsm["X_pca"])):
        with read(tmp_path / "cells.h5ad", array=array, memory_budget=budget) as table:
            np.testing.assert_array_equal(numbers(table), expected)
            assert (table.array_names is None) == array.startswith("obsm")
    with pytest.raises(FileFault, match=r"no array 'obsm/X_pcb'. Did you mean 'obsm/X_pca'"):
        read(tmp_path / "cells.h5ad", array="obsm/X_pcb")
    with pytest.raises(FileFault, match="column of obs 'typ'"):
        read(tmp_path / "cells.h5ad", group="typ")


@BUDGETS
@pytest.mark.filterwarnings("ignore")
def test_zarr_arrays_and_groups_are_read(budget, tmp_path, rng):
    zarr = pytest.importorskip("zarr")
    X = rng.normal(size=(7, 3))
    stored = zarr.open_array(str(tmp_path / "x.zarr"), mode="w", shape=X.shape, chunks=(2, 3), dtype="f8")
    stored[:] = X
    with read(tmp_path / "x.zarr", memory_budget=budget) as table:
        np.testing.assert_array_equal(numbers(table), X)
        np.testing.assert_array_equal(table.cells([6, 1])["x1"], X[[6, 1], 1])
    group = zarr.open_group(str(tmp_path / "group"), mode="w")
    group["a"], group["b"] = X, X[:2]
    with pytest.raises(FileFault, match=r"a \(7, 3\), b \(2, 3\).*with array"):
        read(tmp_path / "group")
    with read(tmp_path / "group", array="b", memory_budget=budget) as table:
        assert table.n == 2
    with pytest.raises(FileFault, match="no array 'c'"):
        read(tmp_path / "group", array="c")
    del group["b"]
    with read(tmp_path / "group", memory_budget=budget) as table:
        assert table.n == 7
        assert table.cells([]).num_rows == 0
    zarr.open_array(str(tmp_path / "wide.zarr"), mode="w", shape=(3, 60), dtype="f8")
    with read(tmp_path / "wide.zarr", memory_budget=budget) as table:
        assert (table.columns, table.cells([0, 2]).num_rows) == ([], 2)
    annotated(rng).write_zarr(tmp_path / "cells.zarr")
    with read(tmp_path / "cells.zarr", memory_budget=budget) as table:
        assert (numbers(table).shape[1], table.names([1])) == (5, ["cell1"])


def image(rng, shape, kind="PNG", dtype=np.uint8):
    stream = io.BytesIO()
    pytest.importorskip("PIL.Image").fromarray(rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype)).save(stream, kind)
    return stream.getvalue()


def album(folder, rng):
    files = {"b/two.jpg": image(rng, (90, 130, 3), "JPEG"), "a.png": image(rng, (8, 8)), "b/one.PNG": image(rng, (9, 9, 4))}
    files |= {"deep.png": image(rng, (20, 20), dtype=np.uint16), ".hidden.png": b"x", "readme.md": b"x"}
    (folder / "b").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_pictures_are_rows_by_their_file_names(tmp_path, rng):
    pillow = pytest.importorskip("PIL.Image")
    path, seen = tmp_path / "album", []
    album(path, rng)
    with read(path, image_size=4, progress=lambda *done: seen.append(done)) as table:
        assert table.names(range(4)) == ["a.png", "b/one.PNG", "b/two.jpg", "deep.png"]
        assert table.array.shape == (4, 18)  # 4 × 4 pixels, and whether a picture is of one colour or noise
        assert table.array.dtype == np.float32
        assert 0 <= table.array[:, :16].min() < table.array[:, :16].max() <= 1
        assert "4 images resized to 4×4, grey." in table.notes
        assert seen[-1][0] == seen[-1][1] > 0
        small, large = table.pictures([0, 2], side=32)
        assert pillow.open(io.BytesIO(small)).size == (8, 8)
        assert max(pillow.open(io.BytesIO(large)).size) == 32
        assert len(table.pictures([0, 1, 2, 3])) == 4
        assert table.find("b/two.jpg") == 2
    with pytest.raises(FileFault, match="more than half of the memory budget"):
        read(path, image_size=4, memory_budget=TINY)
    with read(path, image_size=4, colour=True, group="folder") as table:
        assert table.array.shape == (4, 50)
        assert table.groups.tolist() == [".", "b", "b", "."]
        assert "4 images resized to 4×4, colour." in table.notes
    exif = pillow.Exif()
    exif[0x0112] = 6  # was held upright: the left side is the upper one
    (tmp_path / "two").mkdir()
    pillow.fromarray(np.repeat(np.uint8([[0, 255]]), 4, axis=1).repeat(8, axis=0)).save(
        tmp_path / "two" / "turned.png", exif=exif
    )
    pillow.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "two" / "nothing.png")
    with read(tmp_path / "two", image_size=2) as table:
        np.testing.assert_allclose(table.array[0, :4], 1)  # what is transparent is white
        np.testing.assert_allclose(table.array[1, :4].reshape(2, 2), [[0, 0], [1, 1]], atol=0.1)
