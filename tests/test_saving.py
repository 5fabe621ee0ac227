"""Saved models: the same answers in another process, small files, and nothing but a clear refusal of everything else."""

import io
import json
import pickle
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
import zlib
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import mosaic
from mixed_tables import customers
from mosaic import MOSAIC, EffectiveCount, MOSAICOutlierDetector, MOSAICSampler, Paper, Sketch, datasets
from mosaic.exceptions import InvalidInputError
from mosaic.show import report_html
from sources import open_source

X = np.vstack([np.random.default_rng(0).normal(size=(295, 5)), 9.0 * np.random.default_rng(1).normal(size=(5, 5))])
NEW = np.random.default_rng(2).normal(size=(40, 5)) * np.linspace(0.1, 6.0, 40)[:, None]
K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
WORDS = sp.random_array((200, 120), density=0.04, random_state=0, format="csr") + sp.eye_array(200, 120, format="csr")
WEIGHTS = np.random.default_rng(3).integers(0, 3, 300)
FITS = {
    "plain": lambda: (MOSAIC(7).fit(X), NEW),
    "auto": lambda: (MOSAIC().fit(X), NEW),
    "scaled": lambda: (MOSAIC(7, scale=True).fit(X), NEW),
    "single precision": lambda: (MOSAIC(7).fit(X.astype(np.float32)), NEW.astype(np.float32)),
    "weights": lambda: (MOSAIC(7).fit(X, sample_weight=WEIGHTS), NEW),
    "must_include": lambda: (MOSAIC(7).fit(X, must_include=[297, 3], exclude=[4]), NEW),
    "quotas": lambda: (MOSAIC(7).fit(X, groups=WEIGHTS, quotas={0: 2, 1: 0.5}), NEW),
    "kept groups": lambda: (MOSAIC(7, min_group=2).fit(X), NEW),
    "cosine": lambda: (MOSAIC(7, kernel="cosine").fit(X), NEW),
    "laplacian": lambda: (MOSAIC(7, kernel="laplacian", gamma=EffectiveCount(20.0)).fit(X), NEW),
    "polynomial": lambda: (MOSAIC(7, kernel="polynomial").fit(X), NEW),
    "diffusion": lambda: (MOSAIC(7, kernel="diffusion").fit(X), NEW),
    "precomputed": lambda: (MOSAIC(7, kernel="precomputed").fit(K), K[:30]),
    "sparse": lambda: (MOSAIC(7).fit(WORDS), WORDS[:30]),
    "directions": lambda: (MOSAIC(7).fit(np.random.default_rng(5).normal(size=(200, 64))), np.ones((2, 64))),
    "passes": lambda: (MOSAIC(7).fit(open_source(X)), NEW),
    "paper": lambda: (MOSAIC(7, algorithm="paper", gamma=0.1).fit(X), NEW),
    "sketch": lambda: (MOSAIC(7, algorithm=Paper(sketch=Sketch(n_initial=40)), gamma=0.1).fit(X), NEW),
    "detector": lambda: (MOSAICOutlierDetector(min_group=2).fit(X), NEW),
    "sampler": lambda: (MOSAICSampler(7, random_state=np.random.default_rng(1)).fit(X), NEW),
}


DAMAGED = "is damaged or no saved model"
NO_ATTRIBUTE = "its attributes are not those of a fitted model"


@pytest.fixture(params=FITS)
def fitted(request, by_passes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[request.param]()


@pytest.fixture(scope="module")
def model():
    return MOSAIC(7).fit(X)


@pytest.fixture
def file(model, tmp_path):
    model.save(tmp_path / "a.mosaic")
    return tmp_path / "a.mosaic"


def answers(model, new):
    """Everything that a model says about new rows and about its own."""
    found = {name: getattr(model, name)(new) for name in ("predict", "transform", "score_samples") if hasattr(model, name)}
    if hasattr(model, "score"):
        found["score"] = model.score(new)
    names = ("is_outlier_", "effective_count_", "labels_", "representation_error_", "representative_indices_")
    for name in (*names, "influence_", "alpha_", "lam_"):
        if hasattr(model, name):
            found[name] = getattr(model, name)
    found |= {"gamma": model.gamma_, "certificate": str(getattr(model, "certificate_", None))}
    found |= {"decisions": str(model.explain()), "rows": [model.explain(row) for row in (0, 3, 199)]}
    return found


def same(found, expected):
    np.testing.assert_equal(found, expected)
    for name, value in expected.items():
        assert getattr(found[name], "dtype", None) == getattr(value, "dtype", None), name


def test_loaded_model_answers_as_before(fitted, tmp_path):
    model, new = fitted
    if model.selection_.is_sampled:  # a saved model cannot read the rows again
        _ = model.labels_, model.effective_count_, model.representation_error_, model.certificate_
    model.save(tmp_path / "early.mosaic")
    expected = answers(model, new)
    model.save(tmp_path / "late.mosaic")
    for name in ("early.mosaic", "late.mosaic"):
        loaded = mosaic.load(tmp_path / name)
        assert type(loaded) is type(model)
        same(answers(loaded, new), expected)
    assert loaded.get_params().keys() == model.get_params().keys()
    if type(model) is MOSAIC and model.get_params()["algorithm"] is None:
        assert report_html(loaded) == report_html(model)


def test_another_process_gives_the_same_bits(model, file, tmp_path):
    np.save(tmp_path / "new.npy", NEW)
    code = (
        "import sys, numpy as np, mosaic; model = mosaic.load(sys.argv[1]); Y = np.load(sys.argv[2]);"
        "np.savez(sys.argv[3], predict=model.predict(Y), transform=model.transform(Y), score_samples=model.score_samples(Y));"
        "print(model.explain(3))"
    )
    words = [sys.executable, "-c", code, str(file), str(tmp_path / "new.npy"), str(tmp_path / "out.npz")]
    told = subprocess.run(words, capture_output=True, text=True, check=True)
    assert str(model.explain(3)) in told.stdout
    with np.load(tmp_path / "out.npz") as found:
        for name in found:
            np.testing.assert_array_equal(found[name], getattr(model, name)(NEW))
    again = mosaic.load(file).rethreshold(n_representatives=4)  # changed like a fresh one
    np.testing.assert_array_equal(again.representative_indices_, MOSAIC(4).fit(X).representative_indices_)


def test_mixed_table_is_encoded_as_in_fit(tmp_path):
    people = customers(200, missing=0.2).drop(columns="age_months").astype({"active": str})
    people.loc[3, "age"] = 999
    model = MOSAIC(5).fit(people)
    model.save(tmp_path / "people.mosaic")
    loaded = mosaic.load(tmp_path / "people.mosaic")
    assert loaded.encoder_ == model.encoder_
    assert "age 999" in loaded.explain(3).reason
    new = people.sample(50, random_state=1)[people.columns[::-1]]
    same(answers(loaded, new), answers(model, new))
    assert report_html(loaded) == report_html(model)


@pytest.mark.usefixtures("by_passes")
def test_model_by_passes_says_what_it_did_not_keep(tmp_path):
    fitted = MOSAIC(7).fit(open_source(X))
    fitted.save(tmp_path / "a.mosaic")
    loaded = mosaic.load(tmp_path / "a.mosaic")
    assert not hasattr(loaded, "labels_")
    assert loaded.certificate_ == fitted.certificate_
    assert loaded.rethreshold(n_representatives=4).n_representatives_ == 4


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: MOSAIC(20), MOSAICOutlierDetector])
def test_pickles_and_files_are_not_much_larger_than_what_predictions_need(make, tmp_path):
    """These are picks, references and factors."""
    model = make().fit(np.random.default_rng(0).normal(size=(1500, 6)))
    _ = getattr(model, "certificate_", None), model.is_outlier_, model.explain(0)
    model.save(tmp_path / "a.mosaic")
    counting = model.selection_.data.counting
    arrays = [counting.reference.X, model.selection_.chosen_kernel.X, counting.weights, counting.strengths, counting.complement]
    for size in (len(pickle.dumps(model)), (tmp_path / "a.mosaic").stat().st_size):
        assert size < 2 * sum(array.nbytes for array in arrays)


def test_what_cannot_be_saved_is_refused_and_a_file_is_written_once_and_whole(model, file, tmp_path):
    with pytest.raises(InvalidInputError, match="exists already"):
        model.save(file)
    before = file.read_bytes()
    model.save(file, force=True)
    assert file.read_bytes() == before  # equal models, equal bytes

    class Own(MOSAIC):
        pass

    for bad, error, told in (
        (MOSAIC(3, kernel=lambda A, B: A @ B.T + 1.0).fit(X), InvalidInputError, "holds a function, which a file without code"),
        (Own(3).fit(X), InvalidInputError, "this is a Own"),
        (MOSAIC(3), ValueError, "not fitted"),
    ):
        with pytest.raises(error, match=told):
            bad.save(tmp_path / "b.mosaic")
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def forged(file, change=lambda told: told, save=np.savez, **others):
    """The file with another structure or other arrays."""
    with np.load(file) as stored:
        arrays = {**stored, **others}
    told = json.loads(arrays["structure"].tobytes())
    arrays["structure"] = np.frombuffer(json.dumps(change(told)).encode(), np.uint8)
    with file.open("wb") as opened:
        save(opened, **arrays)
    return file


def refused(file, match):
    with pytest.raises(InvalidInputError, match=match) as caught:
        mosaic.load(file)
    assert str(caught.value).startswith(str(file))
    assert caught.value.remedy


def with_entry(told, name, value, *names):
    """The structure with another entry of a dict within it."""
    pairs = told["dict"]
    for part in names:
        pairs = next(value for key, value in pairs if key == part)["dict"]
    pairs[:] = [pair for pair in pairs if pair[0] != name] + [[name, value]]
    return told


@pytest.mark.parametrize("keep", [0.0, 0.01, 0.5, 0.99, 0.9999])
def test_truncated_files_are_refused(file, keep):
    data = file.read_bytes()
    file.write_bytes(data[: int(keep * len(data))])
    refused(file, "is no saved model, or not all of it|the file is empty")


@pytest.mark.slow
def test_flipped_bytes_anywhere_are_refused_or_do_not_matter(model, file):
    data, expected = file.read_bytes(), model.predict(NEW)
    for place in np.random.default_rng(0).integers(0, len(data), 60).tolist() + list(range(len(data) - 60, len(data), 3)):
        other = bytearray(data)
        other[place] ^= 1 << (place % 8)
        file.write_bytes(bytes(other))
        try:
            found = mosaic.load(file)
        except InvalidInputError:
            continue
        np.testing.assert_array_equal(found.predict(NEW), expected)  # such as the date of a member


class Trap:
    sprung: ClassVar[list[bool]] = []

    def __reduce__(self):
        return Trap.sprung.append, (True,)


@pytest.mark.parametrize(
    ("forge", "match"),
    [
        (lambda told: with_entry(told, "format", 99), r"another version of MOSAIC \(.*\); this one is .*. Fit and save it again"),
        (lambda told: with_entry(told, "estimator", "Popen"), DAMAGED),
        (lambda told: with_entry(told, "selection_", {"Popen": {"args": "true"}}, "fitted"), DAMAGED),
        (lambda told: with_entry(told, "selection_", {"Certificate": {"args": "true"}}, "fitted"), DAMAGED),
        (lambda told: with_entry(told, "selection_", {"array": "array0"}, "fitted"), DAMAGED),
        (lambda told: with_entry(told, "selection_", {"array": "absent"}, "fitted"), DAMAGED),
        (lambda told: with_entry(told, "verbosity", 1, "parameters"), DAMAGED),
        (lambda told: with_entry(told, "fitted", 3), DAMAGED),
        (lambda told: {"a": 1, "b": 2}, DAMAGED),
        (lambda told: [told], DAMAGED),
        (lambda told: None, DAMAGED),
        (lambda told: with_entry(told, "predict", 1, "fitted"), NO_ATTRIBUTE),
        (lambda told: with_entry(told, "labels_", 1, "fitted"), NO_ATTRIBUTE),
        (lambda told: with_entry(told, "__class__", 1, "fitted"), NO_ATTRIBUTE),
        (lambda told: with_entry(told, "_found", 1, "fitted"), NO_ATTRIBUTE),
        (lambda told: with_entry(told, "_hidden_", 1, "fitted"), NO_ATTRIBUTE),
    ],
)
def test_forged_structure_is_refused(file, forge, match):
    refused(forged(file, forge), match)


def test_compressed_members_and_pickled_objects_are_refused_before_they_are_read(file):
    refused(forged(file, save=np.savez_compressed), "members are compressed")
    trap = np.array([Trap()], dtype=object)
    refused(forged(file, array0=trap, save=partial(np.savez, allow_pickle=True)), DAMAGED)
    assert not Trap.sprung


def header_of_array(*shape):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def nested(path, depth):
    """A zip file whose stored members lie in one another: each is an array of bytes, the next member and all after it."""
    parts, content = [], bytes(1 << 16)
    for level in reversed(range(depth)):
        name, content = f"array{level}.npy".encode(), header_of_array(len(content)) + content
        checksum = zlib.crc32(content)
        about = struct.pack("<HHHHHIIIHH", 20, 0, 0, 0, 33, checksum, len(content), len(content), len(name), 0)
        content = b"PK\x03\x04" + about + name + content
        parts.append((name, about, len(content)))
    directory = b"".join(
        b"PK\x01\x02" + struct.pack("<H", 20) + about + struct.pack("<HHHII", 0, 0, 0, 0, len(content) - size) + name
        for name, about, size in parts
    )
    end = struct.pack("<HHHHIIH", 0, 0, depth, depth, len(directory), len(content), 0)
    path.write_bytes(content + directory + b"PK\x05\x06" + end)


def test_what_would_take_more_memory_than_the_file_has_bytes_is_refused(tmp_path, file):
    nested(tmp_path / "nested.mosaic", 300)
    tracemalloc.start()
    refused(tmp_path / "nested.mosaic", "its members lie in one another")
    assert tracemalloc.get_traced_memory()[1] < 2 * (tmp_path / "nested.mosaic").stat().st_size
    tracemalloc.stop()
    with zipfile.ZipFile(file, "a") as packed:
        packed.writestr("large.npy", header_of_array(10**13))
    refused(file, r"large\.npy has less numbers than it says")


def test_other_files_are_refused(tmp_path):
    for name, data in {"text.mosaic": b"id,x\n1,2\n", "pickle.mosaic": pickle.dumps({"a": 1})}.items():
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name, "is no saved model")
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    refused(tmp_path / "arrays.npz", DAMAGED)
    np.savez(tmp_path / "deep.npz", structure=np.frombuffer(b"[" * 100_000 + b"]" * 100_000, np.uint8))
    refused(tmp_path / "deep.npz", DAMAGED)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        mosaic.load(tmp_path / "absent.mosaic")
    refused(tmp_path, "is no saved model")


def test_names_and_cells_of_a_table_are_kept(tmp_path):
    pytest.importorskip("pyarrow")
    data = datasets.blobs_with_gross_outliers()
    lines = [f"p{i},{x},{y},note {i}" for i, (x, y) in enumerate(data.X.tolist())]
    (tmp_path / "points.csv").write_text("\n".join(["id,x,y,note", *lines]))
    with mosaic.read(tmp_path / "points.csv", columns=["x", "y"]) as table:
        model = MOSAIC(5).fit(table)
        model.save(tmp_path / "points.mosaic", table=table)
    loaded = mosaic.load(tmp_path / "points.mosaic")
    kept = loaded.kept_rows_.as_rows()
    assert (kept.names([7, 399]), kept.find("p42")) == (["p7", "p399"], 42)
    row = int(model.representative_indices_[0])
    assert kept.cells([row]).to_pylist() == [{"id": f"p{row}", "x": data.X[row, 0], "y": data.X[row, 1], "note": f"note {row}"}]
    loaded.save(tmp_path / "again.mosaic")
    assert mosaic.load(tmp_path / "again.mosaic").kept_rows_.ids == loaded.kept_rows_.ids
