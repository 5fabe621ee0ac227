"""Loaders on small made-up files, and on the real ones where they are; cases and splits."""

import hashlib
from collections import Counter

import numpy as np
import pytest

from experiments.datasets import Dataset, MissingData, WrongData, case, case_of_split, files, load, make_case, natural, split
from mosaic.exceptions import InvalidInputError

pytestmark = pytest.mark.slow

real_folder = pytest.mark.skipif(not files.data_folder().is_dir(), reason="the folder of real sets is not here")


def counting(shape, dtype=np.uint8):
    return (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)


# Files


def test_usps_are_multiples_of_one_two_thousandth_in_rows_of_the_picture(put):
    X2000 = counting((3, 16, 16), np.uint16) * 7
    put("usps.npz", X2000=X2000, y=np.array([4, 0, 9], np.uint8), n_train=np.int64(2))
    dataset = load("usps")
    assert dataset.X.dtype == np.float64
    assert dataset.X[2, 16] == X2000[2, 1, 0] / 2000
    assert (dataset.X.shape, dataset.image_shape) == ((3, 256), (16, 16))
    assert dataset.y.tolist() == [4, 0, 9]
    assert int(dataset.extras["n_train"]) == 2
    assert dataset.is_outlier is None


@pytest.mark.parametrize(
    ("name", "file", "shape"),
    [
        ("mnist", "mnist_t10k.npz", (28, 28)),
        ("yaleb", "yaleb_32x32.npz", (32, 32)),
        ("orl", "orl_32x32.npz", (32, 32)),
        ("cifar10", "cifar10_test_2000.npz", (32, 32, 3)),
    ],
)
def test_pictures_of_bytes_are_flattened_into_the_unit_interval(put, name, file, shape):
    X = counting((2, *shape))
    X[0].flat[0] = 255
    put(file, X=X, y=np.array([1, 2], np.uint8))
    dataset = load(name)
    np.testing.assert_array_equal(dataset.X, X.reshape(2, -1) / 255)
    assert dataset.image_shape == shape
    assert dataset.y.dtype.kind == "i"
    assert dataset.source
    assert dataset.licence


def test_outliers_of_adbench_are_marked_and_named_after_the_file(put):
    put("adbench/6_cardio.npz", X=np.array([[1], [2], [3]], np.int16), y=np.array([0, 1, 0]))
    dataset = load("adbench/6_cardio")
    assert dataset.is_outlier.tolist() == [False, True, False]
    assert dataset.y is None
    assert dataset.X.dtype == np.float64


def test_another_file_is_an_error_that_names_both_hashes_and_a_missing_one_says_file_and_remedy(put, folder):
    path = put("frey_faces.npz", X=counting((2, 28, 20)))
    expected = files.sha256_of(path)
    np.savez_compressed(path, X=counting((2, 28, 20)) ^ 1)
    with pytest.raises(WrongData) as error:
        load("frey")
    assert expected in str(error.value)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in str(error.value)
    with pytest.raises(MissingData) as error:
        load("yaleb")
    for part in ("'yaleb'", str(folder), "yaleb_32x32.npz", "MOSAIC_DATA", "is not there"):
        assert part in str(error.value)


SHAPES = {
    "usps": (9298, 256), "mnist": (10000, 784), "isolet": (1560, 617), "yaleb": (2414, 1024), "orl": (400, 1024),
    "olivetti": (400, 4096), "frey": (1965, 560), "cifar10": (2000, 3072), "bsds": (300, 12288), "pbmc": (700, 765),
    "basehock": (1993, 4862), "adbench/10_cover": (286048, 10), "adbench/NLP_by_BERT__20news_3": (615, 768),
}  # fmt: skip


@real_folder
@pytest.mark.parametrize("name", SHAPES)
def test_real_sets_have_the_published_shape(name):
    dataset = load(name)
    assert dataset.X.shape == SHAPES[name]
    assert dataset.X.dtype == np.float64
    assert np.isfinite(dataset.X).all()
    if dataset.image_shape is not None:
        assert np.prod(dataset.image_shape) == SHAPES[name][1]
        assert 0 <= dataset.X.min() < 0.1 < 0.8 < dataset.X.max() <= 1


def test_resizing_by_any_factor_is_the_mean_over_a_finer_grid(rng):
    images = rng.uniform(size=(2, 6, 6, 3))
    # 6 → 4 rows: repeat each pixel twice, then take blocks of three.
    fine = images.repeat(2, axis=1).repeat(2, axis=2)
    np.testing.assert_allclose(natural.resize(images, (4, 4)), fine.reshape(2, 4, 3, 4, 3, 3).mean(axis=(2, 4)))
    np.testing.assert_allclose(natural.resize(images, (12, 12)), fine)


def test_natural_images_are_the_outliers_among_faces(put):
    """The faces are black, the natural images of one grey value each."""
    values = np.arange(1, 13, dtype=np.uint8)[:, None, None, None]
    put("frey_faces.npz", X=np.zeros((20, 28, 20), np.uint8))
    put("cifar10_test_2000.npz", X=np.broadcast_to(values, (12, 32, 32, 3)), y=np.arange(12))
    put("bsds500_trainval_64x64.npz", X=np.broadcast_to(values[:3] + 100, (3, 64, 64, 3)))
    task = case("frey", contamination="images", ratio=0.5, n=10)
    assert (task.X.shape, task.image_shape) == ((15, 560), (28, 20))
    np.testing.assert_array_equal(task.X.max(axis=1) > 0, task.is_outlier)
    assert len(np.unique(task.X[task.is_outlier], axis=0)) == 5


# Cases


@pytest.fixture
def labelled(rng):
    """60, 30 and 10 rows of three classes, in no order."""
    y = rng.permutation(np.repeat([3, 5, 8], [60, 30, 10]))
    return Dataset("labelled", rng.normal(size=(100, 4)), y)


def test_parts_keep_the_shares_of_the_classes_and_no_row_is_in_both(labelled):
    task = make_case(labelled, n=50, seed=2)
    assert Counter(task.y.tolist()) == Counter(task.y_test.tolist()) == {3: 30, 5: 15, 8: 5}
    together = np.concatenate([task.X, task.X_test])
    np.testing.assert_array_equal(np.unique(together, axis=0), np.unique(labelled.X, axis=0))


def test_rows_labels_and_marks_belong_together(labelled):
    task = make_case(labelled, contamination="uniform", ratio=0.4, n=40, seed=1)
    assert task.is_outlier.sum() == 16
    np.testing.assert_array_equal(task.X[~task.is_outlier], labelled.X[task.rows[~task.is_outlier]])
    np.testing.assert_array_equal(task.y[~task.is_outlier], labelled.y[task.rows[~task.is_outlier]])
    assert set(task.y[task.is_outlier]) == set(task.rows[task.is_outlier]) == {-1}
    assert task.is_outlier[:40].any()  # mixed, not appended


def test_case_depends_on_the_seed_and_its_inliers_do_not_on_the_contamination(labelled):
    first, again, other = (make_case(labelled, contamination="uniform", ratio=0.4, n=40, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert set(first.rows) != set(other.rows)
    assert not np.isin(first.X[first.is_outlier], other.X[other.is_outlier]).any()
    for kind, ratio in ((None, 0.0), ("far", 1.0)):
        task = make_case(labelled, contamination=kind, ratio=ratio, n=40, seed=1)
        assert set(task.rows) - {-1} == set(first.rows) - {-1}
        np.testing.assert_array_equal(task.X_test, first.X_test)


def test_fewer_rows_of_a_marked_set_keep_the_share_of_outliers(rng):
    marked = Dataset("marked", rng.normal(size=(50, 2)), is_outlier=np.arange(50) % 5 == 0)
    task = make_case(marked, n=20)
    assert ((~task.is_outlier).sum(), task.is_outlier.sum()) == (20, 5)
    assert (~make_case(marked, n=41).is_outlier).sum() == 40  # it has no more
    with pytest.raises(InvalidInputError, match="marks its own outliers"):
        make_case(marked, contamination="uniform", ratio=0.1)


@pytest.mark.parametrize("wrong", [{"n": 101}, {"n": 0}, {"n": 2.5}, {"ratio": 0.1}, {"ratio": -1.0, "contamination": "uniform"}])
def test_impossible_cases_are_refused(labelled, wrong):
    with pytest.raises(InvalidInputError):
        make_case(labelled, **wrong)


def test_case_of_a_split_of_seventy_ten_twenty_in_every_class_is_judged_on_the_part_that_is_named(labelled):
    parts = split(labelled, seed=0)
    assert [Counter(labelled.y[rows].tolist()) for rows in (parts.train, parts.validation, parts.test)] == [
        {3: 42, 5: 21, 8: 7},
        {3: 6, 5: 3, 8: 1},
        {3: 12, 5: 6, 8: 2},
    ]
    np.testing.assert_array_equal(np.sort(np.concatenate([parts.train, parts.validation, parts.test])), np.arange(100))
    for on, rows in (("validation", parts.validation), ("test", parts.test)):
        task = case_of_split(labelled, parts, on)
        np.testing.assert_array_equal(task.X, labelled.X[parts.train])
        np.testing.assert_array_equal(task.X_test, labelled.X[rows])
        np.testing.assert_array_equal(task.y_test, labelled.y[rows])
        assert not task.is_outlier.any()
    with pytest.raises(InvalidInputError, match="'validation' or 'test'"):
        case_of_split(labelled, parts, "train")
