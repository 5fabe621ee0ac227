"""Loaders on small made-up files, and on the real ones where they are; cases and splits; downloads from this machine."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat
from scipy.spatial.distance import pdist

from experiments.datasets import (
    Dataset,
    MissingData,
    WrongData,
    available,
    case,
    case_of_split,
    convert,
    draw,
    fetch,
    files,
    load,
    make_case,
    natural,
    real,
    split,
)
from mosaic.exceptions import InvalidInputError

pytestmark = pytest.mark.slow

real_folder = pytest.mark.skipif(not files.data_folder().is_dir(), reason="the folder of real sets is not here")


@pytest.fixture
def put(folder, monkeypatch):
    """A function that writes a made-up file and its entry in the table of checksums."""
    table = {}
    monkeypatch.setattr(files, "checksums", lambda: table)

    def write(file, **arrays):
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        np.savez_compressed(path, **arrays)
        table[file] = files.describe(path)
        return path

    return write


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


def test_isolet_are_multiples_of_one_ten_thousandth(put):
    put("isolet_1560.npz", X10000=np.array([[-10000, 1234]], np.int16), y=np.array([26], np.uint8))
    dataset = load("isolet")
    assert dataset.X.tolist() == [[-1.0, 0.1234]]
    assert dataset.image_shape is None


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
    assert dataset.X.max() == 1.0
    assert dataset.image_shape == shape
    assert dataset.y.dtype.kind == "i"
    assert dataset.source
    assert dataset.licence


def test_frey_faces_have_no_classes(put):
    put("frey_faces.npz", X=counting((4, 28, 20)))
    dataset = load("frey")
    assert dataset.X.shape == (4, 560)
    assert dataset.y is None


def test_salient_objects_come_with_their_masks(put):
    masks = np.array([np.eye(3), np.zeros((3, 3))], np.uint8)
    put("msra_b_100_150x200.npz", images=counting((2, 3, 3, 3)), masks=masks, names=np.array(["a", "b"]))
    dataset = load("msra_b")
    assert dataset.image_shape == (3, 3, 3)
    np.testing.assert_array_equal(dataset.extras["masks"], masks)
    assert sorted(dataset.extras) == ["masks", "names"]


def test_crops_that_are_no_faces_are_outliers(put):
    X = np.linspace(0, 1, 2 * 625).reshape(2, 25, 25).astype(np.float32)
    put("lfw_subset_25x25.npz", X=X, is_face=np.array([1, 0], np.uint8))
    dataset = load("lfw")
    assert dataset.is_outlier.tolist() == [False, True]
    np.testing.assert_array_equal(dataset.X, X.reshape(2, -1).astype(np.float64))


def test_outliers_of_adbench_are_marked_and_named_after_the_file(put):
    put("adbench/6_cardio.npz", X=np.array([[1], [2], [3]], np.int16), y=np.array([0, 1, 0]))
    dataset = load("adbench/6_cardio")
    assert dataset.is_outlier.tolist() == [False, True, False]
    assert dataset.y is None
    assert dataset.X.dtype == np.float64
    assert available()["adbench/6_cardio"] == "present"


def test_another_file_is_an_error_that_names_both_hashes(put):
    path = put("frey_faces.npz", X=counting((2, 28, 20)))
    expected = files.sha256_of(path)
    changed = counting((2, 28, 20))
    changed[1, 3, 4] ^= 1
    np.savez_compressed(path, X=changed)
    with pytest.raises(WrongData) as error:
        load("frey")
    assert expected in str(error.value)
    assert hashlib.sha256(path.read_bytes()).hexdigest() in str(error.value)
    assert available()["frey"] == "wrong"


def test_a_truncated_file_is_an_error_that_names_both_hashes(put):
    path = put("frey_faces.npz", X=counting((2, 28, 20)))
    expected = files.sha256_of(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(WrongData, match="cannot be read") as error:
        load("frey")
    assert expected in str(error.value)
    assert files.sha256_of(path) in str(error.value)


def test_another_shape_is_named(put):
    path = put("frey_faces.npz", X=counting((2, 28, 20)))
    np.savez_compressed(path, X=counting((3, 28, 20)))
    with pytest.raises(WrongData, match=r"X is \(3, 28, 20\) \|u1, expected \(2, 28, 20\) \|u1"):
        load("frey")


def test_a_missing_array_is_named(put):
    path = put("mnist_t10k.npz", X=counting((2, 28, 28)), y=np.zeros(2, np.uint8))
    np.savez_compressed(path, X=counting((2, 28, 28)))
    with pytest.raises(WrongData, match="holds the arrays X, expected X, y"):
        load("mnist")


def test_the_same_numbers_packed_in_another_way_are_accepted(put):
    path = put("frey_faces.npz", X=counting((2, 28, 20)))
    before = files.sha256_of(path)
    np.savez(path, X=counting((2, 28, 20)))
    assert files.sha256_of(path) != before
    assert load("frey").X.shape == (2, 560)
    assert available()["frey"] == "present"


def test_a_file_with_pickled_objects_is_not_opened(put):
    path = put("frey_faces.npz", X=counting((2, 28, 20)))
    np.savez(path, X=np.array([{}, {}], dtype=object))
    with pytest.raises(WrongData, match="cannot be read"):
        load("frey")


def test_a_missing_set_says_folder_file_and_remedy(folder):
    with pytest.raises(MissingData) as error:
        load("yaleb")
    for part in ("'yaleb'", str(folder), "yaleb_32x32.npz", "MOSAIC_DATA", "is not there"):
        assert part in str(error.value)
    assert available()["yaleb"] == "missing"
    assert available()["digits"] == "built in"


def test_a_missing_folder_is_said_to_be_missing(folder, monkeypatch):
    monkeypatch.setenv("MOSAIC_DATA", str(folder / "nowhere"))
    with pytest.raises(MissingData, match="the folder does not exist"):
        load("yaleb")


def test_the_folder_is_next_to_the_repository_unless_the_environment_says_otherwise(monkeypatch, tmp_path):
    monkeypatch.setenv("MOSAIC_DATA", str(tmp_path))
    assert files.data_folder() == tmp_path
    monkeypatch.delenv("MOSAIC_DATA")
    assert files.data_folder() == files.REPOSITORY.parent / "shared" / "data"
    assert (files.REPOSITORY / "experiments" / "datasets").is_dir()


def test_an_unknown_name_is_told_the_known_ones(folder):
    with pytest.raises(InvalidInputError, match=r"digits, .*usps.*; got 'uspss'"):
        load("uspss")


def test_checksums_written_for_a_folder_are_those_that_reading_needs(put, tmp_path):
    put("frey_faces.npz", X=counting((2, 28, 20)))
    put("adbench/6_cardio.npz", X=np.eye(3), y=np.array([0, 1, 0]))
    target = tmp_path / "table.json"
    files.write_checksums(tmp_path, target)
    assert '"adbench/6_cardio.npz"' in target.read_text()
    assert json.loads(target.read_text()) == files.checksums()


def test_every_described_set_is_in_the_table_of_checksums():
    assert {described.file for described in real.real_sets().values()} == set(files.checksums())
    assert sum(name.startswith("adbench/") for name in real.real_sets()) == 25


@real_folder
@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("usps", (9298, 256), 10),
        ("mnist", (10000, 784), 10),
        ("isolet", (1560, 617), 26),
        ("yaleb", (2414, 1024), 38),
        ("orl", (400, 1024), 40),
        ("olivetti", (400, 4096), 40),
        ("frey", (1965, 560), None),
        ("cifar10", (2000, 3072), 10),
        ("bsds", (300, 12288), None),
        ("lfw", (200, 625), None),
        ("msra_b", (100, 90000), None),
        ("pbmc", (700, 765), 10),
        ("glove", (25000, 100), None),
        ("basehock", (1993, 4862), 2),
        ("pcmac", (1943, 3289), 2),
        ("adbench/10_cover", (286048, 10), None),
        ("adbench/45_wine", (129, 13), None),
        ("adbench/NLP_by_BERT__20news_3", (615, 768), None),
    ],
)
def test_real_sets_have_the_published_shape(name, shape, classes):
    dataset = load(name)
    assert dataset.X.shape == shape
    assert dataset.X.dtype == np.float64
    assert np.isfinite(dataset.X).all()
    assert (None if dataset.y is None else len(np.unique(dataset.y))) == classes
    if dataset.image_shape is not None:
        assert np.prod(dataset.image_shape) == shape[1]
        assert 0 <= dataset.X.min() < 0.1 < 0.8 < dataset.X.max() <= 1


@real_folder
def test_real_outliers_are_as_many_as_published():
    found = {name: int(load(f"adbench/{name}").is_outlier.sum()) for name in ("6_cardio", "45_wine", "18_Ionosphere")}
    assert found == {"6_cardio": 176, "45_wine": 10, "18_Ionosphere": 126}


@real_folder
def test_every_real_set_is_there():
    assert set(available().values()) == {"built in", "present"}


# Manifolds and natural images


def test_embedding_a_manifold_keeps_its_distances():
    for name in ("sphere", "trefoil", "swiss_roll"):
        flat, embedded = draw(name, 50, random_state=3), draw(f"{name}/12", 50, random_state=3)
        assert embedded.shape == (50, 12)
        np.testing.assert_allclose(pdist(embedded), pdist(flat))


@pytest.mark.parametrize("name", ["torus", "sphere/", "sphere/x", "sphere/-4"])
def test_a_manifold_that_is_not_known_is_refused(name):
    with pytest.raises(InvalidInputError, match="ambient dimension"):
        draw(name, 10)


def test_shrinking_by_whole_factors_takes_the_mean_of_blocks(rng):
    images = rng.uniform(size=(3, 12, 8))
    np.testing.assert_allclose(natural.resize(images, (6, 4)), images.reshape(3, 6, 2, 4, 2).mean(axis=(2, 4)))
    # Blocks of 3 × 3 leave two columns over, one at each side.
    middle = images[:, :, 1:7].reshape(3, 4, 3, 2, 3)
    np.testing.assert_allclose(natural.resize(images, (4, 2)), middle.mean(axis=(2, 4)))


def test_resizing_by_any_factor_is_the_mean_over_a_finer_grid(rng):
    images = rng.uniform(size=(2, 6, 6, 3))
    # 6 → 4 rows: repeat each pixel twice, then take blocks of three.
    fine = images.repeat(2, axis=1).repeat(2, axis=2)
    np.testing.assert_allclose(natural.resize(images, (4, 4)), fine.reshape(2, 4, 3, 4, 3, 3).mean(axis=(2, 4)))
    np.testing.assert_allclose(natural.resize(images, (12, 12)), fine)


def test_only_the_centre_is_used_where_proportions_differ():
    image = np.arange(24.0).reshape(1, 4, 6)
    np.testing.assert_allclose(natural.resize(image, (4, 4)), image[:, :, 1:5])
    np.testing.assert_allclose(natural.resize(image, (2, 6)), image[:, 1:3])


def test_brightness_weighs_the_colours():
    assert natural.grey(np.array([[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]])).ravel().tolist() == [
        0.299,
        0.587,
        0.114,
    ]


@pytest.fixture
def pictures(put):
    """Frey faces that are black, natural images of one grey value each."""
    values = np.arange(1, 13, dtype=np.uint8)[:, None, None, None]
    put("frey_faces.npz", X=np.zeros((20, 28, 20), np.uint8))
    put("cifar10_test_2000.npz", X=np.broadcast_to(values, (12, 32, 32, 3)), y=np.arange(12))
    put("bsds500_trainval_64x64.npz", X=np.broadcast_to(values[:3] + 100, (3, 64, 64, 3)))


def test_natural_images_take_the_shape_of_the_inliers(pictures):
    grey, colour = natural.natural_images((28, 20)), natural.natural_images((10, 10, 3))
    assert grey.shape == (15, 560)
    assert colour.shape == (15, 300)
    expected = np.array([*range(1, 13), 101, 102, 103]) / 255
    np.testing.assert_allclose(grey, np.broadcast_to(expected[:, None], grey.shape))
    np.testing.assert_allclose(colour, np.broadcast_to(expected[:, None], colour.shape))


def test_natural_images_are_the_outliers_among_faces(pictures):
    task = case("frey", contamination="images", ratio=0.5, n=10)
    assert task.X.shape == (15, 560)
    np.testing.assert_array_equal(task.X.max(axis=1) > 0, task.is_outlier)
    assert len(np.unique(task.X[task.is_outlier], axis=0)) == 5
    assert task.image_shape == (28, 20)


def test_natural_images_need_other_images_as_inliers(pictures):
    with pytest.raises(InvalidInputError, match="swiss_roll is none"):
        case("swiss_roll", contamination="images", ratio=0.5)
    with pytest.raises(InvalidInputError, match="natural images themselves"):
        case("cifar10", contamination="images", ratio=0.5)


# Cases


@pytest.fixture
def labelled(rng):
    """60, 30 and 10 rows of three classes, in no order."""
    y = rng.permutation(np.repeat([3, 5, 8], [60, 30, 10]))
    return Dataset("labelled", rng.normal(size=(100, 4)), y)


def test_parts_keep_the_shares_of_the_classes_and_no_row_is_in_both(labelled):
    task = make_case(labelled, n=50, seed=2)
    assert Counter(task.y.tolist()) == {3: 30, 5: 15, 8: 5}
    assert Counter(task.y_test.tolist()) == {3: 30, 5: 15, 8: 5}
    together = np.concatenate([task.X, task.X_test])
    np.testing.assert_array_equal(np.unique(together, axis=0), np.unique(labelled.X, axis=0))


@pytest.mark.parametrize("n", [1, 2, 7, 33, 99, 100])
def test_the_training_part_has_exactly_n_rows_whatever_the_rounding(labelled, n):
    task = make_case(labelled, n=n)
    assert (len(task.X), len(task.X_test)) == (n, 100 - n)
    for c, count in ((3, 60), (5, 30), (8, 10)):
        assert abs((task.y == c).sum() - n * count / 100) < 1


def test_rows_labels_and_marks_belong_together(labelled):
    task = make_case(labelled, contamination="uniform", ratio=0.4, n=40, seed=1)
    assert task.is_outlier.sum() == 16
    np.testing.assert_array_equal(task.X[~task.is_outlier], labelled.X[task.rows[~task.is_outlier]])
    np.testing.assert_array_equal(task.y[~task.is_outlier], labelled.y[task.rows[~task.is_outlier]])
    assert set(task.y[task.is_outlier]) == set(task.rows[task.is_outlier]) == {-1}
    assert task.is_outlier[:40].any()  # mixed, not appended


def test_the_same_seed_gives_the_same_case_and_another_one_does_not(labelled):
    first, again, other = (make_case(labelled, contamination="uniform", ratio=0.4, n=40, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.X_test, again.X_test)
    assert set(first.rows) != set(other.rows)
    assert not np.isin(first.X[first.is_outlier], other.X[other.is_outlier]).any()


def test_outliers_depend_on_the_seed_even_among_the_same_inliers(labelled):
    first, other = (make_case(labelled, contamination="uniform", ratio=0.4, n=100, seed=s) for s in (1, 2))
    assert set(first.rows) == set(other.rows)
    assert not np.isin(first.X[first.is_outlier], other.X[other.is_outlier]).any()


def test_inliers_and_test_part_do_not_depend_on_the_contamination(labelled):
    clean, few, other = (
        make_case(labelled, contamination=kind, ratio=ratio, n=40)
        for kind, ratio in ((None, 0.0), ("uniform", 0.2), ("clustered", 1.0))
    )
    for task in (few, other):
        assert set(task.rows) - {-1} == set(clean.rows)
        np.testing.assert_array_equal(task.X_test, clean.X_test)


def test_a_ratio_that_is_a_whole_number_is_still_a_ratio(labelled):
    assert make_case(labelled, contamination="uniform", ratio=1, n=30).is_outlier.sum() == 30


def test_without_n_labelled_sets_keep_a_test_part_and_others_are_used_whole(labelled, rng):
    task = make_case(labelled)
    assert (len(task.X), len(task.X_test)) == (70, 30)
    task = make_case(Dataset("plain", rng.normal(size=(100, 4))))
    assert (len(task.X), len(task.X_test)) == (100, 0)
    assert task.y is task.y_test is None


def test_a_test_part_has_at_most_a_thousand_rows(rng):
    dataset = Dataset("long", rng.normal(size=(5000, 1)), rng.integers(0, 2, 5000))
    assert len(make_case(dataset, n=100).X_test) == len(make_case(dataset).X_test) == 1000


def test_manifolds_are_drawn_anew_for_each_seed():
    first, again, other = (case("swiss_roll/5", contamination="dependent", ratio=0.5, n=60, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.isin(first.X, other.X).any()
    assert first.X.shape == (90, 5)
    assert first.X_test.shape == (1000, 5)
    assert case("sphere").X.shape == (1000, 3)


def test_manifold_inliers_lie_on_the_manifold_and_uniform_outliers_do_not():
    task = case("sphere", contamination="uniform", ratio=1.0, n=200)
    on_sphere = np.isclose(np.linalg.norm(task.X, axis=1), 1.0)
    np.testing.assert_array_equal(on_sphere, ~task.is_outlier)


@pytest.fixture
def marked(rng):
    return Dataset("marked", rng.normal(size=(50, 2)), is_outlier=np.arange(50) % 5 == 0)


def test_a_set_with_outliers_of_its_own_is_taken_as_it_is(marked):
    task = make_case(marked)
    assert sorted(task.rows) == list(range(50))
    np.testing.assert_array_equal(task.is_outlier, marked.is_outlier[task.rows])
    np.testing.assert_array_equal(task.X, marked.X[task.rows])
    assert task.X_test.shape == (0, 2)


def test_fewer_rows_of_a_marked_set_keep_the_share_of_outliers(marked):
    task = make_case(marked, n=20)
    assert ((~task.is_outlier).sum(), task.is_outlier.sum()) == (20, 5)
    assert (~make_case(marked, n=41).is_outlier).sum() == 40  # it has no more
    with pytest.raises(InvalidInputError, match="marks its own outliers"):
        make_case(marked, contamination="uniform", ratio=0.1)


@pytest.mark.parametrize(
    "wrong", [{"n": 101}, {"n": 0}, {"n": 2.5}, {"ratio": 0.1}, {"ratio": -1.0, "contamination": "uniform"}]
)
def test_impossible_cases_are_refused(labelled, wrong):
    with pytest.raises(InvalidInputError):
        make_case(labelled, **wrong)


def test_splits_are_seventy_ten_twenty_in_every_class(labelled):
    parts = split(labelled, seed=0)
    assert [Counter(labelled.y[rows].tolist()) for rows in (parts.train, parts.validation, parts.test)] == [
        {3: 42, 5: 21, 8: 7},
        {3: 6, 5: 3, 8: 1},
        {3: 12, 5: 6, 8: 2},
    ]
    np.testing.assert_array_equal(np.sort(np.concatenate([parts.train, parts.validation, parts.test])), np.arange(100))


def test_splits_depend_on_the_seed_only(labelled):
    first, again, other = split(labelled, 1), split(labelled, 1), split(labelled, 2)
    np.testing.assert_array_equal(first.test, again.test)
    assert set(first.test) != set(other.test)


def test_splits_without_classes_have_the_same_sizes(rng):
    parts = split(Dataset("plain", rng.normal(size=(50, 2))), seed=0)
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (35, 5, 10)


def test_a_case_of_a_split_is_judged_on_the_part_that_is_named(labelled):
    parts = split(labelled, seed=0)
    for on, rows in (("validation", parts.validation), ("test", parts.test)):
        task = case_of_split(labelled, parts, on)
        np.testing.assert_array_equal(task.X, labelled.X[parts.train])
        np.testing.assert_array_equal(task.X_test, labelled.X[rows])
        np.testing.assert_array_equal(task.y_test, labelled.y[rows])
        assert not task.is_outlier.any()
    with pytest.raises(InvalidInputError, match="'validation' or 'test'"):
        case_of_split(labelled, parts, "train")


# Downloads

BODY = bytes(range(256)) * 20_000  # 5 MB: several pieces
SHA = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """/body, /short (hangs up half way), /moved (redirects to /body), /file/… (what the server holds), else 404."""

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/body")
            self.end_headers()
            return
        body = BODY if self.path in ("/body", "/short") else server.held.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/short" else body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.held, httpd.asked = {}, []
        httpd.address = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


def contents(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_download_is_the_file_and_nothing_else_is_left(server, tmp_path):
    target = tmp_path / "new" / "body.bin"
    assert fetch.download(f"{server.address}/body", target, SHA, progress=False) == target
    assert target.read_bytes() == BODY
    assert contents(tmp_path) == ["body.bin", "new"]


def test_progress_is_told_in_bytes(server, tmp_path):
    seen = []
    fetch.download(f"{server.address}/body", tmp_path / "b", SHA, progress=lambda *report: seen.append(report))
    assert len(seen) > 1
    assert seen[-1] == (len(BODY), len(BODY))
    assert seen == sorted(seen)


def test_a_redirection_is_followed(server, tmp_path):
    target = fetch.download(f"{server.address}/moved", tmp_path / "b", SHA, progress=False)
    assert target.read_bytes() == BODY
    assert server.asked == ["/moved", "/body"]


def test_a_right_file_is_not_downloaded_again_and_a_wrong_one_is_replaced(server, tmp_path):
    target = tmp_path / "b"
    target.write_bytes(BODY)
    fetch.download(f"{server.address}/body", target, SHA, progress=False)
    assert server.asked == []
    target.write_bytes(b"old")
    fetch.download(f"{server.address}/body", target, SHA, progress=False)
    assert target.read_bytes() == BODY


def test_a_corrupted_file_is_refused_with_both_hashes_and_the_old_one_stays(server, tmp_path):
    server.held["/file"] = corrupted = BODY[:-1] + b"!"
    (tmp_path / "b").write_bytes(b"old")
    with pytest.raises(fetch.DownloadError) as error:
        fetch.download(f"{server.address}/file", tmp_path / "b", SHA, progress=False)
    assert SHA in str(error.value)
    assert hashlib.sha256(corrupted).hexdigest() in str(error.value)
    assert contents(tmp_path) == ["b"]
    assert (tmp_path / "b").read_bytes() == b"old"


def test_an_interrupted_transfer_leaves_nothing_and_the_next_one_starts_anew(server, tmp_path):
    for sha256 in (SHA, None):  # without a hash the length alone tells
        with pytest.raises(fetch.DownloadError, match=f"after {len(BODY) // 2} of {len(BODY)} bytes"):
            fetch.download(f"{server.address}/short", tmp_path / "b", sha256, progress=False)
        assert contents(tmp_path) == []
    assert fetch.download(f"{server.address}/body", tmp_path / "b", SHA, progress=False).read_bytes() == BODY


def test_ctrl_c_leaves_nothing(server, tmp_path):
    def stop(done, total):
        assert contents(tmp_path) != []  # it is under way
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch.download(f"{server.address}/body", tmp_path / "b", SHA, progress=stop)
    assert contents(tmp_path) == []


def test_a_file_that_is_gone_says_so(server, tmp_path):
    with pytest.raises(fetch.DownloadError, match=r"/nothing cannot be had: HTTP 404 .*moved or is gone"):
        fetch.download(f"{server.address}/nothing", tmp_path / "b", SHA, progress=False)
    assert contents(tmp_path) == []


def test_no_network_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("http_proxy", raising=False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/body"
        with pytest.raises(fetch.DownloadError, match=r"cannot be reached: .*Is there a network"):
            fetch.download(url, tmp_path / "b", SHA, progress=False)
    assert contents(tmp_path) == []


def test_only_addresses_of_the_web_are_downloaded(tmp_path):
    with pytest.raises(InvalidInputError, match="http"):
        fetch.download(Path("/etc/hostname").as_uri(), tmp_path / "b", None)


def test_a_published_file_that_is_ours_is_fetched_as_it_is(server, put, monkeypatch):
    path = put("adbench/6_cardio.npz", X=np.eye(3), y=np.array([0, 1, 0]))
    server.held["/6"] = path.read_bytes()
    path.unlink()
    monkeypatch.setattr(fetch, "sources", lambda: {"adbench/6_cardio": fetch.Source((f"{server.address}/6",))})
    assert fetch.fetch("adbench/6_cardio", progress=False) == path
    assert load("adbench/6_cardio").is_outlier.tolist() == [False, True, False]


def test_a_converted_set_is_checked_by_its_numbers_before_it_is_written(server, put, monkeypatch, tmp_path):
    X = counting((3, 28, 20))
    path = put("frey_faces.npz", X=X)
    path.unlink()
    monkeypatch.setattr(fetch, "sources", lambda: {"frey": fetch.Source((f"{server.address}/ff",), convert.frey_faces)})
    mat = tmp_path.parent / f"{tmp_path.name}.mat"
    savemat(mat, {"ff": np.flip(X).reshape(3, 560).T})
    server.held["/ff"] = mat.read_bytes()
    with pytest.raises(fetch.DownloadError, match="the numbers of X have SHA-256"):
        fetch.fetch("frey", progress=False)
    assert contents(tmp_path) == []
    savemat(mat, {"ff": X.reshape(3, 560).T})
    server.held["/ff"] = mat.read_bytes()
    fetch.fetch("frey", progress=False)
    np.testing.assert_array_equal(load("frey").X, X.reshape(3, -1) / 255)
    assert contents(tmp_path) == ["frey_faces.npz"]


def test_a_set_without_a_known_address_must_be_put_by_hand(folder):
    with pytest.raises(InvalidInputError, match=r"no public address is known for 'msra_b'; known are frey, .*by hand"):
        fetch.fetch("msra_b")


def test_addresses_name_the_folder_of_the_group():
    sources = fetch.sources()
    root = "https://raw.githubusercontent.com/Minqi824/ADBench/3dac8221/adbench/datasets"
    assert sources["adbench/22_magic.gamma"].urls == (f"{root}/Classical/22_magic.gamma.npz",)
    assert sources["adbench/CV_by_ResNet18__CIFAR10_0"].urls == (f"{root}/CV_by_ResNet18/CIFAR10_0.npz",)
    assert set(sources) <= set(real.real_sets())


# Conversions


def test_faces_stored_by_columns_are_turned_upright(tmp_path):
    faces = counting((4, 32, 32))
    savemat(
        tmp_path / "m.mat", {"fea": faces.transpose(0, 2, 1).reshape(4, -1).astype(float), "gnd": [[1], [1], [2], [2]]}
    )
    arrays = convert.upright_faces([tmp_path / "m.mat"])
    np.testing.assert_array_equal(arrays["X"], faces)
    assert arrays["X"].dtype == arrays["y"].dtype == np.uint8
    assert arrays["y"].tolist() == [1, 1, 2, 2]


def test_four_decimals_become_whole_numbers_exactly(tmp_path, rng):
    whole = rng.integers(-10_000, 10_001, size=(5, 617))
    savemat(tmp_path / "m.mat", {"X": whole / 10_000, "Y": np.arange(1, 6)[:, None]})
    arrays = convert.isolet([tmp_path / "m.mat"])
    np.testing.assert_array_equal(arrays["X10000"], whole)
    assert arrays["X10000"].dtype == np.int16
    savemat(tmp_path / "m.mat", {"X": whole / 10_000 + 3e-5, "Y": np.arange(1, 6)[:, None]})
    with pytest.raises(InvalidInputError, match="four decimals"):
        convert.isolet([tmp_path / "m.mat"])


@pytest.mark.parametrize("form", [np.asarray, sp.csc_matrix])
def test_term_counts_may_be_sparse_but_must_be_bytes(tmp_path, form):
    counts = counting((3, 7)).astype(float)
    savemat(tmp_path / "m.mat", {"X": form(counts), "Y": [[1], [2], [1]]})
    np.testing.assert_array_equal(convert.term_counts([tmp_path / "m.mat"])["X"], counts)
    savemat(tmp_path / "m.mat", {"X": form(counts + 250), "Y": [[1], [2], [1]]})
    with pytest.raises(InvalidInputError, match="no uint8"):
        convert.term_counts([tmp_path / "m.mat"])


def test_idx_files_are_read_by_their_header(tmp_path):
    images = counting((2, 3, 4))
    paths = [tmp_path / "images", tmp_path / "labels"]
    paths[0].write_bytes(gzip.compress(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]) + images.tobytes()))
    paths[1].write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])))
    arrays = convert.mnist(paths)
    np.testing.assert_array_equal(arrays["X"], images)
    assert arrays["y"].tolist() == [7, 9]
    with pytest.raises(InvalidInputError, match="no IDX file"):
        convert.mnist(paths[::-1])
