"""Files that are odd and all the same are read: other systems, other libraries, other names."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mosaic.rows import FileFault, read
from read_files import BUDGETS, TINY, numbers

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
@BUDGETS
def test_views_of_text_are_text(tmp_path, budget, ending):
    table = pa.table(
        {"name": pa.array(["a", "b"], pa.string_view()), "x": [1.5, 2.5], "raw": pa.array([b"r", None], pa.binary_view())}
    )
    path = tmp_path / f"rows.{ending}"
    if ending == "arrow":
        feather.write_feather(table, str(path), compression="uncompressed")
    else:
        pq.write_table(table, path)
    with read(path, memory_budget=budget) as opened:
        assert opened.names([1, 0]) == ["b", "a"]
        assert opened.find("b") == 1
        assert opened.cells([1]).column("x").to_pylist() == [2.5]
        assert read(path, group="name", memory_budget=budget).groups.tolist() == ["a", "b"]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(FileFault, match="neither a file nor a folder") as caught:
        read(tmp_path / "rows.csv")
    assert "Save" in caught.value.remedy


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".arrow", ".npy"])
def test_a_file_whose_name_is_no_utf8_is_read(tmp_path, ending):
    import gzip

    plain = tmp_path / f"rows{ending}"
    if ending == ".npy":
        np.save(plain, np.array([[1.5], [2.5]]))
    elif ending == ".arrow":
        feather.write_feather(pa.table({"x": [1.5, 2.5]}), str(plain))
    elif ending == ".jsonl":
        plain.write_text('{"x": 1.5}\n{"x": 2.5}\n')
    else:
        plain.write_bytes(gzip.compress(b"x\n1.5\n2.5\n") if ending == ".csv.gz" else b"x\n1.5\n2.5\n")
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9" + ending.encode())
    os.rename(plain, odd)
    for budget in (None, TINY):
        with read(odd, memory_budget=budget) as table:
            assert numbers(table).tolist() == [[1.5], [2.5]]
