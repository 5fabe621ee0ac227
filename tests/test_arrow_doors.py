"""Datasets of pyarrow, which object storage is read by, with the user's filesystem and filters."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import numpy as np
import pytest

from clusters import folder_of, same_fit, table
from mosaic import MOSAIC
from mosaic.exceptions import InvalidInputError
from mosaic.rows import FileFault, Rows

pa = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
pq = pytest.importorskip("pyarrow.parquet")
fsspec = pytest.importorskip("fsspec")

FRAME = table("mixed", 4000)


@pytest.fixture
def folder(tmp_path):
    return folder_of(FRAME, tmp_path / "rows", [0, 100, 100, 3000, 3001, 4000])


OPENED = {
    "Dataset": dataset.dataset,
    "Scanner": lambda folder: dataset.dataset(folder).scanner(),
    "RecordBatchReader": lambda folder: dataset.dataset(folder).scanner().to_reader(),
    "ParquetFile": lambda folder: pq.ParquetFile(written(folder)),
}


def written(folder):
    FRAME.to_parquet(folder.parent / "all.parquet", row_group_size=700)
    return folder.parent / "all.parquet"


@pytest.mark.parametrize("kind", OPENED)
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_what_pyarrow_opens_gives_what_the_frame_gives(kind, where, folder, scratch, monkeypatch):
    if where == "disk":  # rows are laid out on the disk of this machine
        monkeypatch.setattr("mosaic.rows.arrow.may_load", lambda size, budget: False)
    rows = Rows.of(OPENED[kind](folder), memory_budget=1e9)
    assert (rows.kind, rows.n) == (f"pyarrow {kind}", 4000)
    assert len(list(scratch.iterdir())) == (where == "disk")
    model = MOSAIC(10).fit(OPENED[kind](folder))
    np.testing.assert_array_equal(model.representative_indices_, MOSAIC(10).fit(FRAME).representative_indices_)
    chosen = model.select(OPENED[kind](folder))
    assert chosen["words"].to_pylist() == FRAME["words"].iloc[model.representative_indices_].tolist()


def test_hive_folders_filters_and_new_rows(tmp_path):
    FRAME.dropna(subset="city").to_parquet(tmp_path / "hive", partition_cols=["city"])
    given = dataset.dataset(tmp_path / "hive", partitioning="hive")
    model = same_fit(given, given.to_table().to_pandas())
    assert "city" in model.encoder_.names
    some = given.filter(dataset.field("a") > 0)
    assert Rows.of(some).n == int((FRAME.dropna(subset="city")["a"] > 0).sum())
    np.testing.assert_array_equal(model.predict(some), model.predict(some.to_table()))


def test_an_address_is_refused_with_the_line_that_reads_it(folder):
    store = fsspec.filesystem("memory")
    store.put(str(folder), "/rows", recursive=True)
    try:
        with pytest.raises(FileFault, match="is an address or a database, and nothing is fetched from there") as refused:
            MOSAIC(10).fit("memory:///rows")
        (line,) = re.findall(r"in Python pass (pyarrow\.dataset\.dataset\(.*?\)\))", str(refused.value))
        same_fit(eval(line, {"pyarrow": pa, "fsspec": fsspec}), FRAME)
        store.pipe("/rows.csv", FRAME[["a", "b", "city"]].to_csv(index=False).encode())
        with pytest.raises(FileFault, match="is an address") as refused:
            MOSAIC(10).fit("memory:///rows.csv")
        (line,) = re.findall(r"in Python pass (pyarrow\.dataset\.dataset\(.*?\)\))", str(refused.value))
        assert Rows.of(eval(line, {"pyarrow": pa, "fsspec": fsspec})).columns == ["a", "b", "city"]
        with pytest.raises(FileFault, match="is an address") as refused:
            MOSAIC(10).fit(f"file://{folder}")
        (line,) = re.findall(r"in Python pass (pyarrow\.dataset\.dataset\(.*?\)\))", str(refused.value))
        same_fit(eval(line, {"pyarrow": pa, "fsspec": fsspec}), FRAME)
    finally:
        store.rm("/rows", recursive=True)


class Bucket(BaseHTTPRequestHandler):
    """As much of S3 as listing and reading files need; the server has the folder, and notes what is asked for."""

    def do_GET(self):
        root, (path, _, query) = self.server.root, self.path.partition("?")
        file, span = root / path.removeprefix("/bucket/"), self.headers.get("Range")
        if query:
            keys = [key for key in self.server.keys if key.startswith(parse_qs(query)["prefix"][0])]
            about = "<Contents><Key>{}</Key><Size>{}</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
            found = "".join(about.format(key, (root / key).stat().st_size) for key in keys)
            self.give(200, f"<ListBucketResult><KeyCount>{len(keys)}</KeyCount>{found}</ListBucketResult>".encode())
        elif not file.is_file():
            self.give(404, b"")
        else:
            self.server.asked.append(file.name)
            first, last = (0, None) if span is None else map(int, span.removeprefix("bytes=").split("-"))
            self.give(200 if span is None else 206, file.read_bytes()[first : None if last is None else last + 1])

    def do_HEAD(self):
        self.do_GET()

    def give(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def bucket(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    server.root, server.asked = folder.parent, []
    server.keys = [f"rows/{file.name}" for file in sorted(folder.iterdir())]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_folder_in_object_storage_gives_what_the_frame_gives(bucket):
    storage = pytest.importorskip("pyarrow.fs")
    if not hasattr(storage, "S3FileSystem"):
        pytest.skip("this pyarrow has no client of S3")
    here = {"scheme": "http", "endpoint_override": f"127.0.0.1:{bucket.server_port}", "region": "us-east-1"}
    given = dataset.dataset("bucket/rows", filesystem=storage.S3FileSystem(anonymous=True, **here))
    model = same_fit(given, FRAME)
    assert set(bucket.asked) == {key.removeprefix("rows/") for key in bucket.keys}
    assert model.select(given)["words"].to_pylist() == FRAME["words"].iloc[model.representative_indices_].tolist()
    (bucket.root / "rows" / "part-2.parquet").unlink()
    with pytest.raises(InvalidInputError, match=r"pyarrow Dataset: cannot be read"):
        MOSAIC(3).fit(given)


def test_a_dataset_without_rows_and_one_whose_file_is_damaged_are_refused(folder):
    with pytest.raises(InvalidInputError, match="has no rows"):
        MOSAIC(3).fit(dataset.dataset(folder).filter(dataset.field("a") > 1e9))
    given = dataset.dataset(folder)
    other = given.schema.set(0, pa.field("a", pa.null()))
    with pytest.raises(InvalidInputError, match=r"pyarrow Dataset: cannot be read .* with the schema of all"):
        MOSAIC(3).fit(dataset.dataset(folder, schema=other))
    damaged = folder / "part-2.parquet"
    damaged.write_bytes(damaged.read_bytes()[:2000])
    with pytest.raises(InvalidInputError, match=r"pyarrow Dataset: cannot be read"):
        MOSAIC(3).fit(given)
