"""Every kind of file gives its numbers, its names and its columns, and says what it assumed."""

import gc
import gzip
import json
import os
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather

from mosaic import MOSAIC
from mosaic.exceptions import InvalidInputError
from mosaic.rows import read, write_rows
from mosaic.rows.encoder import Encoder
from mosaic.rows.frames import cells_of
from read_files import BUDGETS, TINY, learned, numbers, told, write

HEIGHTS = [[1.7, 36.0], [1.8, 41.0], [1.6, 22.0]]
PEOPLE = "key,height,age,city\na,1.7,36,Ulm\nb,1.8,41,Rome\nc,1.6,22,Ulm\n"


def people():
    columns = {"key": ["a", "b", "c"], "height": [1.7, 1.8, 1.6], "age": [36, 41, 22], "vector": [[1, 2.0], [3, 4], [5, 6]]}
    return pa.table(columns).add_column(3, "city", pa.array(["Ulm", "Rome", "Ulm"]).dictionary_encode())


def write_folder(path):
    path.mkdir()
    pq.write_table(people().slice(0, 2), path / "part-0.parquet")
    pq.write_table(people().slice(2), path / "part-1.parquet")


def write_stream(path):
    with pa.ipc.new_stream(str(path), people().schema) as writer:
        writer.write_table(people(), max_chunksize=2)


def write_lines(path):
    lines = people().to_pandas().to_json(orient="records", lines=True).splitlines()
    path.write_text("\n\n".join(lines) + "\n")  # empty lines are no records


WRITERS = {
    "people.csv": lambda path: path.write_text(PEOPLE),
    "people.tsv": lambda path: path.write_text(PEOPLE.replace(",", "\t")),
    "people.csv.gz": lambda path: path.write_bytes(gzip.compress(PEOPLE.encode())),
    "people.csv.zst": lambda path: path.write_bytes(pa.compress(PEOPLE.encode(), "zstd", asbytes=True)),
    "people.parquet": lambda path: pq.write_table(people(), path, row_group_size=2),
    "people": write_folder,
    "people.feather": lambda path: feather.write_feather(people(), str(path)),
    "people.arrow": write_stream,
    "people.jsonl": write_lines,
    "x.npy": lambda path: np.save(path, HEIGHTS),
}


def written(folder, name):
    WRITERS[name](folder / name)
    return folder / name


@BUDGETS
@pytest.mark.parametrize("name", [name for name in WRITERS if name != "x.npy"])
def test_tables_give_numbers_names_and_columns_however_they_are_written_and_however_large(name, budget, tmp_path):
    path = written(tmp_path, name)
    is_text = name.startswith(("people.csv", "people.tsv"))
    vector = [] if is_text else ["vector"]
    with read(path, exclude_columns=["city", *vector], memory_budget=budget) as table:
        np.testing.assert_array_equal(numbers(table), HEIGHTS)
        assert table.stays == (budget is not None)
        assert (table.n, numbers(table).shape[1], learned(table).names) == (3, 2, ["height", "age"])
        assert (table.id_name, table.has_names, table.columns[0]) == ("key", True, "key")
        assert table.names([2, 0, 2]) == ["c", "a", "c"]
        rows = table.cells([2, 0]).to_pydict()
        assert list(rows) == table.columns
        assert (rows["height"], rows["age"], rows["city"]) == ([1.6, 1.7], [22, 36], ["Ulm", "Ulm"])
        assert table.cells([]).num_rows == 0
        assert table.find("b") == 1
        assert table.pictures([0]) is None
        assert any("'key'" in note for note in table.notes)
        assert not learned(table).has_rules
    with read(path, group="city", weight="age", exclude_columns=vector, memory_budget=budget) as table:
        assert learned(table).names == ["height"]
        assert table.groups.tolist() == ["Ulm", "Rome", "Ulm"]
        assert table.weights.tolist() == [36, 41, 22]
    with read(path, exclude_columns=vector, memory_budget=budget) as table:  # with a category
        assert learned(table).names == ["height", "age", "city"]
        assert (table.n, table.roles.compared[:3]) == (3, ("height", "age", "city"))
        expected = Encoder.of(cells_of(people().select(["height", "age", "city"])))
        assert learned(table).columns == expected.columns
        np.testing.assert_array_equal(numbers(table), expected.encode(cells_of(people())))
        assert table.stays == (budget is not None)
        assert any("Compared as number: height, age; category: city." in note for note in learned(table).describe())
    if not is_text:
        with read(path, memory_budget=budget) as table:
            assert learned(table).names == ["height", "age", "city", "vector"]
            assert any("embedding: vector." in note for note in learned(table).describe())
        with read(path, embedding="vector", memory_budget=budget) as table:
            np.testing.assert_array_equal(numbers(table), [[1, 2], [3, 4], [5, 6]])
            assert learned(table).names is None
            assert table.cells([1])["vector"].to_pylist() == [[3, 4]]


@pytest.mark.parametrize(
    ("header", "cells", "id_name"),
    [
        ("x,id", ["1.5,7", "2.5,8"], "id"),
        ("x,UUID", ["1.5,u", "2.5,v"], "UUID"),
        ("x,patient_id", ["1.5,7", "2.5,8"], "patient_id"),
        (",x", ["0,1.5", "1,2.5"], "index"),  # pandas writes its index without a name
        ("x,id,name", ["1.5,7,a", "2.5,7,b"], "name"),  # values of id repeat
        ("x,who", ["1.5,Ada", "2.5,Max"], "who"),
        ("x,who", ["1.5,Ada", "2.5,Ada"], None),
        ("x,id", ["1.5,0.50", "2.5,0.75"], "id"),  # whatever it is made of
        ("x,text", ["1.5," + "a" * 101, "2.5,b"], None),  # too long for a name
    ],
)
def test_an_id_is_found_by_its_name_or_by_its_values(header, cells, id_name, tmp_path):
    with read(write(tmp_path, "\n".join([header, *cells]) + "\n")) as table:
        assert table.id_name == id_name
        assert table.has_names == (id_name is not None)
        assert "x" in learned(table).names
        assert id_name not in learned(table).names
        assert any(f"{id_name!r}" in note and "`id`" in note for note in table.notes) == (id_name is not None)


def features(path, **options):
    with read(path, **options) as table:
        return learned(table).names


@BUDGETS
def test_columns_are_chosen_and_left_out_by_names_and_patterns_ids_by_name_only(budget, tmp_path):
    path = write(tmp_path, "gene_a,gene_b,age,gene_c\n1,2,3,4\n5,6,7,8\n", "genes.csv")
    with read(path, columns=["gene_*"], exclude_columns=["gene_b"], memory_budget=budget) as table:
        assert learned(table).names == ["gene_a", "gene_c"]
        assert table.columns == ["gene_a", "gene_b", "age", "gene_c"]  # rows keep all
    assert features(path, exclude_columns="age", memory_budget=budget) == ["gene_a", "gene_b", "gene_c"]
    path = write(tmp_path, "shop_id,x\n1,0.5\n1,0.7\n2,0.9\n")
    assert features(path, columns=["*"], memory_budget=budget) == ["x"]
    with read(path, memory_budget=budget) as table:
        assert learned(table).names == ["x"]
        assert any("shop_id" in note for note in told(table))
    path = write(tmp_path, "index,x,zip\n1.50,1,01234\n1.25,2,99999\n")
    with read(path, columns=["index", "x", "zip"], memory_budget=budget) as table:
        assert (learned(table).names, table.id_name) == (["index", "x", "zip"], None)
        assert numbers(table).tolist() == [[1.5, 1.0, 1234.0], [1.25, 2.0, 99999.0]]
    path = write(tmp_path, "x,mosaic_row,mosaic_reason\n1.5,0,odd\n2.5,7,even\n")  # which MOSAIC has added
    with read(path, memory_budget=budget) as table:
        assert (learned(table).names, table.id_name) == (["x"], None)
        assert any("mosaic_row (was added by mosaic itself)" in note for note in told(table))
    assert features(path, columns=["x", "mosaic_row"], memory_budget=budget) == ["x", "mosaic_row"]


def test_types_of_parquet_files_are_kept_and_decimals_flags_and_halves_are_numbers(tmp_path):
    halves, times = pa.array([0.5, 0.25], pa.float16()), pa.array([0, 1], pa.timestamp("ms"))
    table = pa.table({"d": [Decimal("1.5"), Decimal("2.5")], "f": [True, False], "h": halves, "t": times})
    pq.write_table(table, tmp_path / "t.parquet")
    with read(tmp_path / "t.parquet") as opened:
        assert opened.cells([0, 1]).schema.types == table.schema.types
    with read(tmp_path / "t.parquet", exclude_columns=["t"]) as opened:
        np.testing.assert_array_equal(numbers(opened), [[1.5, 1, 0.5], [2.5, 0, 0.25]])
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.float32())}), tmp_path / "s.parquet")
    with read(tmp_path / "s.parquet") as opened:
        assert numbers(opened).dtype == np.float32


def test_rows_of_a_large_file_are_found_by_name_wherever_they_are(tmp_path):
    rows = [f"p{i},0.5" for i in range(20_000)]  # more than two blocks
    with read(write(tmp_path, "\n".join(["id,x", *rows])), memory_budget=TINY) as table:
        assert table.names([19_999, 0, 8192, 7]) == ["p19999", "p0", "p8192", "p7"]
        assert [table.find(name) for name in ("p8191", "p8192", "p19999")] == [8191, 8192, 19_999]
    frame = pd.DataFrame({"x": [1.5, 2.5], "n": [1, 2]}, index=pd.Index([7, 8], name="patient"))
    frame.to_parquet(tmp_path / "frame.parquet")
    with read(tmp_path / "frame.parquet") as table:
        assert (table.id_name, learned(table).names, table.names([1])) == ("patient", ["x", "n"], ["8"])


@BUDGETS
@pytest.mark.parametrize("write_table", [partial(feather.write_feather, compression="uncompressed"), pq.write_table])
def test_views_of_text_are_text(tmp_path, budget, write_table):
    names, raw = pa.array(["a", "b"], pa.string_view()), pa.array([b"r", None], pa.binary_view())
    path = str(tmp_path / ("rows.parquet" if write_table is pq.write_table else "rows.arrow"))
    write_table(pa.table({"name": names, "x": [1.5, 2.5], "raw": raw}), path)
    with read(path, memory_budget=budget) as opened:
        assert opened.names([1, 0]) == ["b", "a"]
        assert opened.find("b") == 1
        assert opened.cells([1]).column("x").to_pylist() == [2.5]
        assert read(path, group="name", memory_budget=budget).groups.tolist() == ["a", "b"]


@BUDGETS
@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.jsonl", "people.feather", "x.npy"])
def test_a_file_whose_name_is_no_utf8_is_read(tmp_path, budget, name):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9" + name.encode())
    os.rename(written(tmp_path, name), odd)
    with read(odd, columns=None if name == "x.npy" else ["height", "age"], memory_budget=budget) as table:
        np.testing.assert_array_equal(numbers(table), HEIGHTS)


@pytest.mark.parametrize(
    ("text", "X", "note"),
    [
        ("a;b\n1,5;2\n2,5;3\n", [[1.5, 2], [2.5, 3]], "decimal comma"),
        ("a|b\n1.5|2\n2.5|3\n", [[1.5, 2], [2.5, 3]], "vertical bar"),
        ("a\tb\n1.5\t2\n2.5\t3\n", [[1.5, 2], [2.5, 3]], "tab"),
        ("1.5,2\n2.5,3\n", [[1.5, 2], [2.5, 3]], "no header"),
        ("1,5;2\n2,5;3\n", [[1.5, 2], [2.5, 3]], "no header"),
        ("\ufeffa,b\r\n1.5,2\r\n2.5,3\r\n", [[1.5, 2], [2.5, 3]], None),
        ("\n\na, b\n1.5, 2\n\n2.5, 3", [[1.5, 2], [2.5, 3]], None),
        ("a\n1.5\n2.5\n", [[1.5], [2.5]], None),
        ("a,0.5\n1.5,2\n2.5,3\n", [[1.5, 2], [2.5, 3]], "taken as header"),
        ('"a ""q""\nb",c\n1.5,2\n2.5,3\n', [[1.5, 2], [2.5, 3]], None),
        ("a,b,\n1.5,true,\n2.5,false,\n", [[1.5, 1], [2.5, 0]], "column_3"),
    ],
)
def test_text_tables_are_read_as_they_are_written(text, X, note, tmp_path):
    for budget in (None, TINY):
        with read(write(tmp_path, text), memory_budget=budget) as table:
            np.testing.assert_array_equal(numbers(table), X)
            assert table.cells([1]).num_columns == len(table.columns)
            assert note is None or any(note in said for said in told(table))


def test_without_ids_rows_are_called_by_their_numbers_in_the_file(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[0.0], [1.0], [2.0]]))
    with read(tmp_path / "x.npy") as table:
        assert not table.has_names
        assert table.names([0, 1]) == ["0", "1"]
        assert table.find("2") == 2
        for name in ("3", "-1", "Ada"):
            with pytest.raises(InvalidInputError, match=r"no row .* 0 to 2"):
                table.find(name)
    with read(write(tmp_path, "id,x\nMargaret,1\nMax,2\nMax,3\n"), memory_budget=TINY) as table:
        with pytest.raises(InvalidInputError, match="mean 'Margaret'"):
            table.find("margret")
        with pytest.raises(InvalidInputError, match="the rows 1 and 2 among them"):
            table.find("Max")


text = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(text, min_size=1, max_size=6, unique=True), ending=st.sampled_from([".csv", ".tsv", ".parquet"]))
def test_ids_survive_writing_and_reading_whatever_they_are(ids, ending, tmp_path):
    path = tmp_path / f"ids{ending}"
    # pyarrow skips what looks like a byte order mark, and the header keeps it from being the first thing in the file.
    write_rows(path, pa.table({"x": np.arange(len(ids)) + 0.5, "id": ids}), force=True)
    for budget in (None, TINY):
        with read(path, id="id", memory_budget=budget) as table:
            assert table.names(range(len(ids))) == ids
            assert [table.find(name) for name in ids] == list(range(len(ids)))
            assert [str(value) for value in table.cells(range(len(ids)))["id"].to_pylist()] == ids


@BUDGETS
def test_tables_with_more_columns_or_longer_cells_than_fit_into_a_first_look_are_read(tmp_path, rng, budget):
    names = [f"a_rather_long_name_of_a_column_{j}" for j in range(9_000)]
    X = rng.integers(0, 9, (4, len(names)))
    lines = [",".join(["sample_id", *names]), *(f"s{i}," + ",".join(map(str, row)) for i, row in enumerate(X.tolist()))]
    with read(write(tmp_path, "\n".join(lines) + "\n"), memory_budget=budget) as table:
        np.testing.assert_array_equal(numbers(table), X)
        assert learned(table).names == names
        assert table.names([3]) == ["s3"]
    long = "so, it goes on\n" * 20_000  # a cell as long as a document
    with read(write(tmp_path, f'x,text\n1,"{long}"\n2,short\n3,"{long}"\n'), memory_budget=budget) as table:
        assert table.cells([2])["text"].to_pylist() == [long]


def test_closing_or_forgetting_a_table_removes_its_temporary_files(tmp_path, scratch):
    for close in (True, False):
        table = read(written(tmp_path, "people.csv"), memory_budget=TINY)
        assert list(scratch.iterdir())
        if close:
            table.close()
            table.close()
        else:
            del table
            gc.collect()
        assert not list(scratch.iterdir())


@pytest.mark.parametrize("budget", [None, 1 << 20])
def test_progress_is_told_in_bytes_until_all_is_done(tmp_path, budget):
    path, seen = write(tmp_path, "x,y\n" + "1.5,2.5\n" * 2_000_000), []
    with read(path, memory_budget=budget, progress=lambda *done: seen.append(done)) as table:
        assert table.n == 2_000_000
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
    assert seen == sorted(seen)


def lines(folder, records):
    return write(folder, "".join(json.dumps(record) + "\n" for record in records), "rows.jsonl")


@BUDGETS
@pytest.mark.parametrize(
    "ids",  # in a CSV file, or in JSON
    [["1.0", "2.0", "3.50"], ["-1", "2", "3"], ["007", "8", "18446744073709551617"], [1.5, 2.5, 3.5], [-1, 2, 3]],
)
def test_numbers_that_are_called_id_name_the_rows_as_they_are_written(tmp_path, budget, ids):
    if isinstance(ids[0], str):
        path = write(tmp_path, "user_id,x\n" + "".join(f"{one},{i}.5\n" for i, one in enumerate(ids)))
    else:
        path = lines(tmp_path, [{"user_id": one, "x": i + 0.5} for i, one in enumerate(ids)])
    with read(path, memory_budget=budget) as table:
        assert learned(table).names == ["x"]
        assert table.id_name == "user_id"
        assert table.names([0, 1, 2]) == [str(one) for one in ids]
        assert [table.find(str(one)) for one in ids] == [0, 1, 2]


@BUDGETS
@pytest.mark.parametrize("part", ["id", "group", "weight"])
def test_a_column_that_has_a_part_is_computed_with_if_it_is_named(tmp_path, budget, part):
    path = write(tmp_path, "x,y\n1,1.5\n2,2.5\n3,0.5\n")
    with read(path, columns=["x", "y"], memory_budget=budget, **{part: "x"}) as table:
        assert learned(table).names == ["x", "y"]
        assert numbers(table).tolist() == [[1, 1.5], [2, 2.5], [3, 0.5]]
        told = {"id": table.names(range(3)), "group": table.groups, "weight": table.weights}[part]
        assert [str(int(one)) for one in told] == ["1", "2", "3"]
    assert features(path, memory_budget=budget, **{part: "x"}) == ["y"]


@BUDGETS
@pytest.mark.parametrize("cells", [["12345678901234567890", "12345678901234567891"], ["NA", "007"], ["00501", "10001"]])
def test_whole_numbers_that_numbers_cannot_hold_stay_text(tmp_path, budget, cells):
    path = write(tmp_path, "x,code\n" + "".join(f"{i}.5,{cell}\n" for i, cell in enumerate(cells)))
    with read(path, memory_budget=budget) as table:
        assert learned(table).names == ["x"]
        assert table.cells([0, 1]).column("code").to_pylist() == cells
        assert any("code" in note for note in told(table))


def test_zeros_and_values_far_down_in_the_file_count(tmp_path, monkeypatch):
    path = write(tmp_path, "x,code\n" + "".join(f"{i}.5,{i + 10_000}\n" for i in range(40_000)) + "0.5,00501\n")
    with read(path) as table:
        assert learned(table).names == ["x"]
        assert table.cells([40_000]).column("code").to_pylist() == ["00501"]
    with read(path, columns=["x", "code"]) as table:
        assert numbers(table)[-1].tolist() == [0.5, 501.0]
        assert not table.notes
    empty = "".join(f"{i}.25,,,\n" for i in range(600_000))  # nothing in the first block
    path = write(tmp_path, "x,late,comment,never\n" + empty + "1.5,2.5,yes,\n")
    with read(path, memory_budget=1e6) as table:
        assert learned(table).names == ["x", "late"]
        assert any("comment (says the same as 'late'), never (has no values)" in note for note in told(table))
    with read(path, memory_budget=1e6, exclude_columns=["late", "comment"]) as table:
        assert (table.kind, learned(table).names, learned(table).has_rules) == ("CSV file", ["x"], False)
        assert table.cells([600_000]).column("comment").to_pylist() == ["yes"]
    monkeypatch.setattr("mosaic.rows.arrow.PARSED_BYTES", 1 << 12)  # and the same of JSON
    path = lines(tmp_path, [*({"x": 1.5, "late": None} for _ in range(1000)), {"x": 1.5, "late": 2.5}])
    assert features(path, memory_budget=TINY) == ["late"]  # x is the same everywhere


@BUDGETS
def test_groups_and_dates_are_called_as_they_are_written(tmp_path, budget):
    path = write(tmp_path, "g,x\n1.50,1\nNA,2\n,3\n02,4\n")
    with read(path, group="g", memory_budget=budget) as table:
        assert table.groups.tolist() == ["1.50", "NA", "missing", "02"]
        assert learned(table).names == ["x"]
    path = lines(tmp_path, [{"id": f"2024-01-0{day}", "x": day, "seen": "2024-02-01"} for day in (1, 2, 3)])
    with read(path, memory_budget=budget) as table:
        assert table.names([0, 2]) == ["2024-01-01", "2024-01-03"]
        assert table.cells([0]).column("seen").to_pylist() == ["2024-02-01"]


def test_a_column_that_is_named_and_excluded_is_excluded(tmp_path):
    path = tmp_path / "points.csv"
    pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0], "c": [5.0, 8.0, 6.0]}).to_csv(path, index=False)
    with read(path, columns=["a", "b", "c"], exclude_columns=["b"]) as rows:
        assert MOSAIC(2).fit(rows).feature_names_in_.tolist() == ["a", "c"]
