"""Checks of single settings: what is accepted, and that a refusal has all parts of a message."""

from datetime import date
from functools import partial

import numpy as np
import pytest

import mosaic
from mosaic import MOSAIC, Paper, Sketch, text
from mosaic.choosing import Settings
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import as_bytes, check_seed, real_number, whole_number


def test_messages_and_json_are_written_as_people_read_them():
    assert [text.figure(x) for x in (998.9999999, 1234567.8, 0.012345, 2.5)] == ["999", "1,234,568", "0.01235", "2.5"]
    assert [text.readable_size(size) for size in (80_000_128, 1536, 17)] == ["76 MiB", "1.5 KiB", "17 bytes"]
    assert text.listed(["age", "height"]) == "age, height"
    assert text.listed([str(i) for i in range(22)]).endswith("19 and 2 more")
    assert text.printable("a\x1b[31mb\u202ec") == r"a\x1b[31mb\u202ec"
    assert text.json_text({"é": "\x9b31m"}) == r'{"é": "\u009b31m"}'
    plain = text.jsonable({"a": float("nan"), 1: (date(2020, 2, 3), b"x", 1.5), "kernel": text.jsonable})
    assert plain == {"a": None, "1": ["2020-02-03", "x", 1.5], "kernel": "mosaic.text.jsonable"}
    table = text.html_table(["row"], [["<b>"], ["c"]], most=1)
    assert table.count("<tr>") == 3
    assert "&lt;b&gt;" in table


def test_numbers_of_any_type_are_accepted_within_their_bounds():
    found = [whole_number("k", value) for value in (7, np.int64(3), np.uint8(2))]
    assert (found, {*map(type, found)}) == ([7, 3, 2], {int})
    shares = (0, 0.5, np.float32(0.25), np.int64(0))
    assert [real_number("share", share, at_least=0, below=1) for share in shares] == [0, 0.5, 0.25, 0]
    assert real_number("x", 1.0, at_least=1, at_most=1) == 1.0
    for seed in (0, np.int64(3), None, np.random.default_rng(0)):
        check_seed(seed)


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, np.nan])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(InvalidInputError) as refused:
        whole_number("k", value, remedy="Leave it.")
    assert str(refused.value) == f"k must be a whole number >= 1; got {value!r}. Leave it."
    with pytest.raises(InvalidInputError, match=r"got 0\."):  # and not np.int64(0)
        whole_number("k", np.int64(0))


@pytest.mark.parametrize("value", [-0.1, 1.0, np.inf, np.nan, True, "0.5", None, 1j])
def test_what_is_no_number_within_bounds_is_refused(value):
    with pytest.raises(InvalidInputError, match=r"share must be a finite number >= 0 and < 1 \(of all rows\); got "):
        real_number("share", value, at_least=0, below=1, meaning="of all rows")
    for bound in ("above", "below"):
        with pytest.raises(InvalidInputError, match=r"finite number [<>] 0.5; got 0\.5\."):  # and not np.float64(0.5)
            real_number("x", np.float64(0.5), **{bound: 0.5})


ROWS = np.random.default_rng(0).normal(size=(40, 3))
WRONG = {
    "tol": ["x", [], float("nan"), True, 0.0],
    "random_state": ["x", [], {}, 2.5, -1, True],
    "kernel": [[], {}, 3, None, "nope"],
    "memory_budget": [float("inf"), float("nan"), "x", [], -1],
    "gamma": [[], -1, {}, None],
}
OF_OUTLIERS = {"contamination": ["yes", -0.1, 0.6, float("nan"), True, None], "min_group": [0, 1.5, "all"], "max_samples": [1]}
OF_THE_PROGRAM = {
    "tol": [*WRONG["tol"], None],
    "max_rank": ["x", 2.5, -1],
    "max_iter": [-1, 0, "x", 2.5, None],
    "solver": [[], "x"],
}


WAYS = {
    "MOSAIC": (lambda **wrong: MOSAIC(**wrong).fit(ROWS), WRONG | OF_OUTLIERS),
    "detector": (lambda **wrong: mosaic.MOSAICOutlierDetector(**wrong).fit(ROWS), WRONG | OF_OUTLIERS),
    "solve": (
        lambda **wrong: mosaic.solve(ROWS, **wrong),
        {k: v for k, v in WRONG.items() if k != "memory_budget"} | OF_THE_PROGRAM,
    ),
    "path": (lambda **wrong: mosaic.path(ROWS, **wrong), {"max_representatives": [2.5, "x", [], -1, 0, None, True]}),
}


@pytest.mark.parametrize(
    ("way", "name", "value"), [(way, name, value) for way in WAYS for name in WAYS[way][1] for value in WAYS[way][1][name]]
)
def test_wrong_settings_are_refused_with_name_value_and_remedy(way, name, value):
    if (way, name) in (("MOSAIC", "max_samples"), ("detector", "tol")):
        pytest.skip("it has no such parameter")
    given = {"algorithm": Paper(tol=value)} if (way, name) == ("MOSAIC", "tol") else {name: value}
    with pytest.raises(InvalidInputError) as refused:
        WAYS[way][0](**given)
    assert refused.value.parameter == name
    assert repr(value) in str(refused.value) or (name == "kernel" and way != "solve")
    assert refused.value.remedy or name == "gamma" or name in OF_OUTLIERS or way in ("solve", "path")


@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        (["a"] * 40, ""),
        (np.zeros(40, dtype=[("w", float)]), ""),
        (np.zeros(40), ""),
        ([1.0, -1.0] * 20, "must be between 0 and 1e+100; entry 1 is -1"),
        (np.full(40, np.nan), "entry 0 is nan"),
        (np.ones(39), "one entry for each of 40 points; got shape (39,)"),
    ],
)
def test_wrong_weights_are_refused(weights, fault):
    for fit in (mosaic.MOSAIC(3).fit, mosaic.MOSAICOutlierDetector().fit, mosaic.solve):
        with pytest.raises(InvalidInputError) as refused:
            fit(ROWS, sample_weight=weights)
        assert refused.value.parameter == "sample_weight"
        assert fault in str(refused.value)
        assert fault or refused.value.remedy


def test_records_are_refused_with_their_fields():
    records = np.array([tuple(row) for row in ROWS], dtype=[("height", float), ("weight", float), ("age", float)])
    fits = (
        MOSAIC(3).fit,
        MOSAIC(3, algorithm=Paper(sketch=Sketch())).fit,
        mosaic.MOSAICOutlierDetector().fit,
        mosaic.solve,
        mosaic.path,
    )
    for ask in (*fits, MOSAIC(3).fit(ROWS).predict):
        with pytest.raises(InvalidInputError, match="records with the fields 'height', 'weight', 'age'"):
            ask(records)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"n_representatives": 1}, "0 are available: 41 rows − 1 outliers"),
        ({"coverage": 0.9}, "all 0 rows that may be chosen reach 0 %"),
    ],
)
def test_a_single_candidate_that_is_an_outlier_is_refused_with_the_arithmetic(settings, fault):
    X = np.vstack([ROWS, [[50.0, 50.0, 50.0]]])
    with pytest.raises(InvalidInputError, match=fault):
        mosaic.MOSAIC(**settings).fit(X, candidates=[40])


@pytest.mark.parametrize(
    ("written", "expected"),
    [("2G", 2.0**31), ("2GiB", 2.0**31), ("2 gib", 2.0**31), ("2147483648", 2.0**31), ("1.5GB", 1.5e9), ("64k", 65_536.0)],
)
def test_sizes_are_read_alike_by_the_estimators_files_and_the_command(written, expected, tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    assert as_bytes(written) == Settings.of(MOSAIC(5, memory_budget=written)).memory_budget == expected
    with mosaic.read(tmp_path / "x.npy", memory_budget=written) as table:
        assert table.n == 40


@pytest.mark.parametrize("written", ["2X", "-1G", "0", "GiB", "inf", "2iB", "1e9G"])
def test_what_is_no_size_is_refused_alike(written, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    for ask in (MOSAIC(2, memory_budget=written).fit, partial(mosaic.read, memory_budget=written)):
        with pytest.raises(InvalidInputError, match="memory_budget must be a number of bytes"):
            ask(tmp_path / "x.npy")
