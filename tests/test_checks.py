"""Checks of single settings: what is accepted, and that a refusal has all parts of a message."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import date

import numpy as np
import pytest

import mosaic
from mosaic import MOSAIC, text
from mosaic.choosing import Settings
from mosaic.cli.options import size
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import as_bytes, check_seed, one_of, real_number, whole_number


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


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(2)])
def test_whole_numbers_of_any_type_are_accepted(value):
    found = whole_number("k", value)
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, np.nan])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(InvalidInputError) as refused:
        whole_number("k", value, remedy="Leave it.")
    assert str(refused.value) == f"k must be a whole number >= 1; got {value!r}. Leave it."


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.25), np.int64(0)])
def test_numbers_within_bounds_are_accepted(value):
    assert real_number("share", value, at_least=0, below=1) == value


@pytest.mark.parametrize("value", [-0.1, 1.0, np.inf, np.nan, True, "0.5", None, 1j])
def test_what_is_no_number_within_bounds_is_refused(value):
    with pytest.raises(InvalidInputError, match=r"share must be a finite number >= 0 and < 1 \(of all rows\); got "):
        real_number("share", value, at_least=0, below=1, meaning="of all rows")


def test_numbers_of_numpy_are_shown_as_numbers():
    with pytest.raises(InvalidInputError, match=r"got 0\.5\."):
        real_number("alpha", np.float64(0.5), above=1)
    with pytest.raises(InvalidInputError, match=r"got 0\."):
        whole_number("k", np.int64(0))


def test_bounds_are_included_or_not_as_they_say():
    assert real_number("x", 1.0, at_least=1, at_most=1) == 1.0
    for bound in ("above", "below"):
        with pytest.raises(InvalidInputError):
            real_number("x", 1.0, **{bound: 1.0})
    with pytest.raises(InvalidInputError, match="x must be a finite number; got inf"):
        real_number("x", np.inf)


@pytest.mark.parametrize("value", ["red", None, 3, np.array(["blue", "green"])])
def test_unknown_words_are_refused_with_all_that_are_known(value):
    assert one_of("colour", "green", ("blue", "green", "grey")) == "green"
    with pytest.raises(InvalidInputError, match="colour must be 'blue', 'green' or 'grey'; got "):
        one_of("colour", value, ("blue", "green", "grey"))


def test_seeds_are_whole_numbers_generators_or_none():
    for seed in (0, 5, np.int64(3), None, np.random.default_rng(0)):
        check_seed(seed)
    for seed in (-1, 0.5, "0"):
        with pytest.raises(InvalidInputError, match="random_state must be a whole number >= 0, a generator or None"):
            check_seed(seed)


ROWS = np.random.default_rng(0).normal(size=(40, 3))
WRONG = {
    "tol": ["x", [], float("nan"), True, 0.0],
    "random_state": ["x", [], {}, 2.5, -1, True],
    "kernel": [[], {}, 3, None, "nope"],
    "memory_budget": [float("inf"), float("nan"), "x", [], -1],
    "gamma": [[], -1, {}, None],
}
OF_THE_PROGRAM = {"max_rank": ["x", 2.5, -1], "max_iter": [-1, 0, "x", 2.5, None], "solver": [[], "x"]}


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        (estimator, name, value)
        for estimator in (mosaic.MOSAIC, mosaic.MOSAICOutlierDetector)
        for name, values in WRONG.items()
        for value in values
        if name in estimator().get_params()
    ],
)
def test_wrong_settings_are_refused_with_name_value_and_remedy(estimator, name, value):
    with pytest.raises(InvalidInputError) as refused:
        estimator(**{name: value}).fit(ROWS)
    assert refused.value.parameter == name
    assert name == "kernel" or repr(value) in str(refused.value)
    if name != "gamma":
        assert refused.value.remedy


@pytest.mark.parametrize(
    ("name", "value"), [("tol", None), *((k, v) for k, values in (WRONG | OF_THE_PROGRAM).items() for v in values)]
)
def test_wrong_settings_of_solve_are_refused_with_name_and_value(name, value):
    with pytest.raises(InvalidInputError) as refused:
        mosaic.solve(ROWS, **{name: value})
    assert refused.value.parameter == name
    assert repr(value) in str(refused.value)


@pytest.mark.parametrize("largest", [2.5, "x", [], -1, 0, None, True])
def test_a_path_of_no_whole_length_is_refused(largest):
    with pytest.raises(InvalidInputError, match="max_representatives must be a whole number"):
        mosaic.path(ROWS, max_representatives=largest)


def test_weights_that_are_words_or_records_are_refused():
    for weights in (["a"] * 40, np.zeros(40, dtype=[("w", float)])):
        for fit in (mosaic.MOSAIC(3).fit, mosaic.MOSAICOutlierDetector().fit, mosaic.solve):
            with pytest.raises(InvalidInputError) as refused:
                fit(ROWS, sample_weight=weights)
            assert refused.value.parameter == "sample_weight"
            assert refused.value.remedy


def test_records_are_refused_with_their_fields():
    records = np.array([tuple(row) for row in ROWS], dtype=[("height", float), ("weight", float), ("age", float)])
    model = mosaic.MOSAIC(3).fit(ROWS)
    passes = mosaic.MOSAIC(3, algorithm="sketch")
    for ask in (mosaic.MOSAIC(3).fit, passes.fit, mosaic.MOSAICOutlierDetector().fit, mosaic.solve, model.predict, mosaic.path):
        with pytest.raises(InvalidInputError, match="records with the fields 'height', 'weight', 'age'"):
            ask(records)


@pytest.mark.parametrize("settings", [{"coverage": 0.9}, {"min_support": 3}, {"n_representatives": 1}])
def test_a_single_candidate_that_is_an_outlier_is_refused_with_the_arithmetic(settings):
    X = np.vstack([ROWS, [[50.0, 50.0, 50.0]]])
    with pytest.raises(InvalidInputError, match="0 are available: 41 rows − 1 outliers"):
        mosaic.MOSAIC(**settings).fit(X, candidates=[40])


def test_sizes_have_decimal_and_binary_units():
    sizes = ("1GiB", "1.5g", "500 MB", "1024", 2e9, None)
    assert [as_bytes(each) for each in sizes] == [2.0**30, 1.5 * 2**30, 5e8, 1024.0, 2e9, None]


@pytest.mark.parametrize("written", ["2G", "2GiB", "2 gib", "2147483648", "1.5GB", "500MB", "64k"])
def test_sizes_are_read_alike_by_the_estimators_files_and_the_command(written, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    np.save(tmp_path / "x.npy", X)
    budget = size(written)
    assert Settings.of(MOSAIC(5, memory_budget=written)).memory_budget == budget
    with mosaic.read(tmp_path / "x.npy", memory_budget=written) as table:
        assert table.n == 60


@pytest.mark.parametrize("written", ["2X", "-1G", "0", "GiB", "inf", "2iB", "1e9G"])
def test_what_is_no_size_is_refused_alike(written, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(ArgumentTypeError, match="must be a number of bytes"):
        size(written)
    with pytest.raises(InvalidInputError, match="memory_budget must be a number of bytes"):
        MOSAIC(2, memory_budget=written).fit(np.eye(3))
    with pytest.raises(InvalidInputError, match="memory_budget must be a number of bytes"):
        mosaic.read(tmp_path / "x.npy", memory_budget=written)
