"""Saved models: the same answers in another process, small files, and nothing but a clear refusal of everything else."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import mosaic
from mosaic import MOSAIC, EffectiveCount, MOSAICOutlierDetector, MOSAICSampler, Paper, Sketch, datasets
from mosaic.exceptions import InvalidInputError
from mosaic.show import report_html

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
    "passes": lambda: (MOSAIC(7, algorithm=Sketch(n_initial=40)).fit(X), NEW),
    "paper": lambda: (MOSAIC(7, algorithm="paper", gamma=0.1).fit(X), NEW),
    "paper by passes": lambda: (MOSAIC(7, algorithm=Paper(sketch=Sketch(n_initial=40)), gamma=0.1).fit(X), NEW),
    "detector": lambda: (MOSAICOutlierDetector(min_group=2).fit(X), NEW),
    "sampler": lambda: (MOSAICSampler(7, random_state=np.random.default_rng(1)).fit(X), NEW),
}


@pytest.fixture(params=FITS)
def fitted(request):
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
    for name in ("is_outlier_", "effective_count_", "labels_", "representation_error_", "representative_indices_", "influence_"):
        if hasattr(model, name):
            found[name] = getattr(model, name)
    found |= {"alpha": model.alpha_, "lam": model.lam_, "gamma": model.gamma_, "certificate": str(model.certificate_)}
    found |= {"decisions": str(model.explain()), "rows": [model.explain(row) for row in (0, 3, 199)]}
    return found


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            assert found[name].dtype == value.dtype, name
            np.testing.assert_array_equal(found[name], value, err_msg=name)
        else:
            assert found[name] == value, name


def test_loaded_model_answers_as_before(fitted, tmp_path):
    model, new = fitted
    if model.selection_.is_sampled:  # a saved model cannot read the rows again
        _ = model.labels_, model.certificate_
    model.save(tmp_path / "early.mosaic")
    expected = answers(model, new)
    model.save(tmp_path / "late.mosaic")
    for name in ("early.mosaic", "late.mosaic"):
        loaded = mosaic.load(tmp_path / name)
        assert type(loaded) is type(model)
        same(answers(loaded, new), expected)
    assert loaded.get_params().keys() == model.get_params().keys()


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


def test_mixed_table_is_encoded_as_in_fit(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.normal(45, 12, 200).round(),
            "income": rng.lognormal(10, 1, 200),
            "city": rng.choice(["Bonn", "Ulm", "Jena"], 200, p=[0.6, 0.395, 0.005]),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 200), "D"),
            "note": [f"{a} {b}" for a, b in zip(rng.choice(["late", "good"], 200), rng.integers(0, 150, 200), strict=True)],
        }
    )
    people.loc[::7, "income"] = np.nan
    people.loc[3, "age"] = 999
    model = MOSAIC(5).fit(people)
    model.save(tmp_path / "people.mosaic")
    loaded = mosaic.load(tmp_path / "people.mosaic")
    assert loaded.table_ == model.table_
    assert "age 999" in loaded.explain(3).reason
    new = people.sample(50, random_state=1)[["note", "since", "city", "age", "income"]]
    same(answers(loaded, new), answers(model, new))
    assert report_html(loaded) == report_html(model)


def test_loaded_model_writes_the_same_report_and_is_changed_like_a_fresh_one(model, file):
    loaded = mosaic.load(file)
    assert report_html(loaded) == report_html(model)
    again = mosaic.load(file).rethreshold(n_representatives=4)
    np.testing.assert_array_equal(again.representative_indices_, MOSAIC(4).fit(X).representative_indices_)


def test_model_by_passes_says_what_it_did_not_keep(tmp_path):
    fitted = MOSAIC(7, algorithm=Sketch(n_initial=40)).fit(X)
    fitted.save(tmp_path / "unsolved.mosaic")
    with pytest.raises(InvalidInputError, match="the encoding is not kept"):
        _ = mosaic.load(tmp_path / "unsolved.mosaic").influence_
    fitted.lam_  # noqa: B018
    fitted.save(tmp_path / "a.mosaic")
    loaded = mosaic.load(tmp_path / "a.mosaic")
    np.testing.assert_array_equal(loaded.influence_, fitted.influence_)
    assert loaded.lam_ == fitted.lam_
    assert not hasattr(loaded, "labels_")
    with pytest.raises(InvalidInputError, match="certificate_ was not computed before this model was saved"):
        _ = loaded.certificate_
    with pytest.raises(InvalidInputError, match="the encoding is not kept"):
        _ = loaded.selection_.material.encoding
    assert loaded.rethreshold(n_representatives=4).n_representatives_ == 4


def needed(model):
    """Bytes of picks, references and factors that predictions are computed from."""
    counting = model.selection_.material.counting
    arrays = [counting.reference.X, model.selection_.chosen_kernel.X, counting.weights, counting.strengths, counting.complement]
    return sum(array.nbytes for array in arrays)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [lambda: MOSAIC(20), MOSAICOutlierDetector, lambda: MOSAIC(20, algorithm="sketch")],
    ids=["in memory", "detector", "passes"],
)
def test_pickles_and_files_are_not_much_larger_than_what_predictions_need(make, tmp_path):
    rows = np.random.default_rng(0).normal(size=(1500, 6))
    model = make().fit(rows)
    _ = model.certificate_, model.is_outlier_, model.explain(0), model.alpha_
    model.save(tmp_path / "a.mosaic")
    for size in (len(pickle.dumps(model)), (tmp_path / "a.mosaic").stat().st_size):
        assert size < 2 * needed(model)


def test_file_is_written_once_and_whole(model, file, tmp_path):
    with pytest.raises(InvalidInputError, match="exists already"):
        model.save(file)
    before = file.read_bytes()
    model.save(file, force=True)
    assert file.read_bytes() == before  # equal models, equal bytes
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_what_cannot_be_saved_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="holds a function, which a file without code cannot hold"):
        MOSAIC(3, kernel=lambda A, B: A @ B.T + 1.0).fit(X).save(tmp_path / "a.mosaic")

    class Own(MOSAIC):
        pass

    with pytest.raises(InvalidInputError, match="this is a Own"):
        Own(3).fit(X).save(tmp_path / "a.mosaic")
    with pytest.raises(ValueError, match="not fitted"):
        MOSAIC(3).save(tmp_path / "a.mosaic")
    groups = np.array([complex(i % 2) for i in range(len(X))])
    model = MOSAIC(3).fit(X)
    object.__setattr__(model.selection_.material.constraints, "names", (groups[0], groups[1]))
    with pytest.raises(InvalidInputError, match="which a file without code cannot hold"):
        model.save(tmp_path / "a.mosaic")
    assert not list(tmp_path.iterdir())


# --------------------------------------------------------------------------------------------------------- damaged and hostile


def forged(file, change):
    """The file with another structure."""
    with np.load(file) as stored:
        arrays = dict(stored)
    told = json.loads(arrays["structure"].tobytes())
    arrays["structure"] = np.frombuffer(json.dumps(change(told)).encode(), np.uint8)
    with file.open("wb") as opened:
        np.savez(opened, **arrays)
    return file


def refused(file, match):
    with pytest.raises(InvalidInputError, match=match) as caught:
        mosaic.load(file)
    assert str(caught.value).startswith(str(file))
    assert caught.value.remedy


def entry(told, *names):
    """The list of pairs of a dict within the structure."""
    pairs = told["dict"]
    for name in names:
        pairs = next(value for key, value in pairs if key == name)["dict"]
    return pairs


def with_entry(told, name, value, *names):
    pairs = entry(told, *names)
    pairs[:] = [pair for pair in pairs if pair[0] != name] + [[name, value]]
    return told


def test_newer_format_is_refused_in_words(file):
    forged(file, lambda told: with_entry(told, "format", 99))
    refused(file, r"another version of MOSAIC \(.*\); this one is .*. Fit and save it again")


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


def test_compressed_members_are_refused_before_they_are_read(file):
    with np.load(file) as stored, (file.parent / "b.mosaic").open("wb") as opened:
        np.savez_compressed(opened, **stored)
    refused(file.parent / "b.mosaic", "members are compressed")


def test_an_array_of_objects_is_never_unpickled(file):
    with np.load(file) as stored:
        arrays = dict(stored)
    arrays["array0"] = np.array([Trap()], dtype=object)
    with file.open("wb") as opened:
        np.savez(opened, allow_pickle=True, **arrays)
    refused(file, "is damaged or no saved model")
    assert not Trap.sprung


class Trap:
    """Says so if it is unpickled."""

    sprung: ClassVar[list[bool]] = []

    def __reduce__(self):
        return Trap.sprung.append, (True,)


@pytest.mark.parametrize(
    "forge",
    [
        lambda told: with_entry(told, "estimator", "Popen"),
        lambda told: with_entry(told, "selection_", {"Popen": {"args": "true"}}, "fitted"),
        lambda told: with_entry(told, "selection_", {"Certificate": {"args": "true"}}, "fitted"),
        lambda told: with_entry(told, "selection_", {"array": "array0"}, "fitted"),
        lambda told: with_entry(told, "selection_", {"array": "absent"}, "fitted"),
        lambda told: with_entry(told, "verbosity", 1, "parameters"),
        lambda told: with_entry(told, "fitted", 3),
        lambda told: {"a": 1, "b": 2},
        lambda told: [told],
        lambda told: None,
    ],
)
def test_forged_structure_is_refused(file, forge):
    refused(forged(file, forge), "is damaged or no saved model")


@pytest.mark.parametrize("name", ["predict", "labels_", "__class__", "_found", "_hidden_"])
def test_attributes_that_a_model_does_not_have_are_refused(file, name):
    refused(forged(file, lambda told: with_entry(told, name, 1, "fitted")), "its attributes are not those of a fitted model")


def test_other_files_are_refused(tmp_path):
    for name, data in {"text.mosaic": b"id,x\n1,2\n", "pickle.mosaic": pickle.dumps({"a": 1})}.items():
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name, "is no saved model")
    np.savez(tmp_path / "arrays.npz", a=np.ones(3))
    refused(tmp_path / "arrays.npz", "is damaged or no saved model")
    np.savez(tmp_path / "deep.npz", structure=np.frombuffer(b"[" * 100_000 + b"]" * 100_000, np.uint8))
    refused(tmp_path / "deep.npz", "is damaged or no saved model")
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
    assert kept.names([7, 399]) == ["p7", "p399"]
    assert kept.find("p42") == 42
    row = int(model.representative_indices_[0])
    assert kept.cells([row]).to_pylist() == [{"id": f"p{row}", "x": data.X[row, 0], "y": data.X[row, 1], "note": f"note {row}"}]
    loaded.save(tmp_path / "again.mosaic")
    assert mosaic.load(tmp_path / "again.mosaic").kept_rows_.ids == loaded.kept_rows_.ids
