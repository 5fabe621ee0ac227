"""What names a row is not computed with, loses no digit, and is the same in small files and in large ones."""

from __future__ import annotations

import json

import pytest

from mosaic.rows import read
from read_files import BUDGETS, TINY, numbers, write

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def lines(folder, records, name="rows.jsonl"):
    return write(folder, "".join(json.dumps(record) + "\n" for record in records), name)


@BUDGETS
@pytest.mark.parametrize(
    "ids",
    [
        ["1.0", "2.0", "3.50"],
        ["-1", "2", "3"],
        ["007", "8", "9"],
        ["18446744073709551617", "18446744073709551618", "3"],
        [1.5, 2.5, 3.5],  # in JSON
        [-1, 2, 3],
    ],
)
def test_numbers_that_are_called_id_name_the_rows_as_they_are_written(tmp_path, budget, ids):
    if isinstance(ids[0], str):
        path = write(tmp_path, "user_id,x\n" + "".join(f"{one},{i}.5\n" for i, one in enumerate(ids)))
    else:
        path = lines(tmp_path, [{"user_id": one, "x": i + 0.5} for i, one in enumerate(ids)])
    with read(path, memory_budget=budget) as table:
        assert table.feature_names == ["x"]
        assert table.id_name == "user_id"
        assert table.names([0, 1, 2]) == [str(one) for one in ids]
        assert [table.find(str(one)) for one in ids] == [0, 1, 2]


@BUDGETS
def test_ids_and_codes_are_computed_with_if_they_are_named(tmp_path, budget):
    path = write(tmp_path, "index,x,zip\n1.50,1,01234\n1.25,2,99999\n")
    with read(path, columns=["index", "x", "zip"], memory_budget=budget) as table:
        assert numbers(table).tolist() == [[1.5, 1.0, 1234.0], [1.25, 2.0, 99999.0]]


@BUDGETS
def test_columns_that_mosaic_has_added_are_not_computed_with(tmp_path, budget):
    path = write(tmp_path, "x,mosaic_row,mosaic_reason\n1.5,0,odd\n2.5,7,even\n")
    with read(path, memory_budget=budget) as table:
        assert table.feature_names == ["x"]
        assert table.id_name is None
        assert any("mosaic_row" in note for note in table.notes)
    with read(path, columns=["x", "mosaic_row"], memory_budget=budget) as table:
        assert table.feature_names == ["x", "mosaic_row"]


@BUDGETS
@pytest.mark.parametrize("part", ["id", "group", "weight"])
def test_a_column_that_has_a_part_is_computed_with_if_it_is_named(tmp_path, budget, part):
    path = write(tmp_path, "x,y\n1,1.5\n2,2.5\n3,0.5\n")
    with read(path, columns=["x", "y"], memory_budget=budget, **{part: "x"}) as table:
        assert table.feature_names == ["x", "y"]
        assert numbers(table).tolist() == [[1, 1.5], [2, 2.5], [3, 0.5]]
        told = {"id": table.names(range(3)), "group": table.groups, "weight": table.weights}[part]
        assert [str(int(one)) for one in told] == ["1", "2", "3"]
    with read(path, memory_budget=budget, **{part: "x"}) as table:
        assert table.feature_names == ["y"]


@BUDGETS
@pytest.mark.parametrize("cells", [["12345678901234567890", "12345678901234567891"], ["NA", "007"], ["00501", "10001"]])
def test_whole_numbers_that_numbers_cannot_hold_stay_text(tmp_path, budget, cells):
    path = write(tmp_path, "x,code\n" + "".join(f"{i}.5,{cell}\n" for i, cell in enumerate(cells)))
    with read(path, memory_budget=budget) as table:
        assert table.feature_names == ["x"]
        assert table.cells([0, 1]).column("code").to_pylist() == cells
        assert any("code" in note for note in table.notes)


def test_zeros_far_down_in_the_file_are_kept(tmp_path):
    path = write(tmp_path, "x,code\n" + "".join(f"{i}.5,{i + 10_000}\n" for i in range(40_000)) + "0.5,00501\n")
    with read(path) as table:
        assert table.feature_names == ["x"]
        assert table.cells([40_000]).column("code").to_pylist() == ["00501"]
    with read(path, columns=["x", "code"]) as table:
        assert table.X[-1].tolist() == [0.5, 501.0]
        assert not table.notes


def test_a_column_that_is_empty_in_the_first_block_is_computed_with_all_the_same(tmp_path):
    empty = "".join(f"{i}.25,,,\n" for i in range(600_000))
    path = write(tmp_path, "x,late,comment,never\n" + empty + "1.5,2.5,yes,\n")
    with read(path, memory_budget=1e6) as table:
        assert table.feature_names == ["x", "late"]
        assert any("comment (says the same as 'late'), never (has no values)" in note for note in table.notes)
    with read(path, memory_budget=1e6, exclude_columns=["late", "comment"]) as table:
        assert table.kind == "CSV file"
        assert table.feature_names == ["x"]
        assert table.encoder is None
        assert table.cells([600_000]).column("comment").to_pylist() == ["yes"]


@BUDGETS
def test_groups_are_called_as_they_are_written(tmp_path, budget):
    path = write(tmp_path, "g,x\n1.50,1\nNA,2\n,3\n02,4\n")
    with read(path, group="g", memory_budget=budget) as table:
        assert table.groups.tolist() == ["1.50", "NA", "missing", "02"]
        assert table.feature_names == ["x"]


@BUDGETS
def test_dates_in_json_stay_as_they_are_written(tmp_path, budget):
    path = lines(tmp_path, [{"id": f"2024-01-0{day}", "x": day, "seen": "2024-02-01"} for day in (1, 2, 3)])
    with read(path, memory_budget=budget) as table:
        assert table.names([0, 2]) == ["2024-01-01", "2024-01-03"]
        assert table.cells([0]).column("seen").to_pylist() == ["2024-02-01"]


def test_what_is_missing_in_the_first_block_of_json_may_be_a_number_further_down(tmp_path, monkeypatch):
    monkeypatch.setattr("mosaic.rows.arrow.PARSED_BYTES", 1 << 12)
    path = lines(tmp_path, [*({"x": 1.5, "late": None} for _ in range(1000)), {"x": 1.5, "late": 2.5}])
    with read(path, memory_budget=TINY) as table:
        assert table.feature_names == ["late"]  # x is the same everywhere
