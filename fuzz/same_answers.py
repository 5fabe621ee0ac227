"""Write what mosaic answers to forty problems of all kinds, and compare with what it answered before.

    OPENBLAS_NUM_THREADS=1 python fuzz/same_answers.py --write before.json
    OPENBLAS_NUM_THREADS=1 python fuzz/same_answers.py --compare before.json

Rows and sentences must be equal, numbers up to 1e-5 of their size, and those of certificates up to 1e-3, the gap that programs
are solved to. The exit status is the number of problems that differ. The answers depend on the versions of NumPy and SciPy, so
they are written on the machine on which they are compared.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import pandas as pd
import scipy.sparse as sp

import mosaic
from mosaic import MOSAIC, MOSAICOutlierDetector, Paper, Polynomial, Sketch, datasets
from mosaic.kernels import EffectiveCount

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mixed_tables import customers, planted, visits

#: Rows whose reasons are compared, besides those of the first pick and the first outlier.
EXPLAINED = (0, 7, 33)


def blobs(n=400, d=2, seed=0, outliers=8):
    """Five groups of points, and some that are far from all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 0.4 + rng.normal(size=(5, d))[rng.integers(0, 5, n)] * 4
    X[:outliers] = rng.normal(size=(outliers, d)) * 40
    return X


def words(n=300, d=120, seed=1):
    """Word counts of documents on four subjects."""
    rng = np.random.default_rng(seed)
    subjects = rng.dirichlet(np.full(d, 0.05), 4)
    return sp.csr_array(np.array([rng.multinomial(40, subjects[i % 4]) for i in range(n)], float))


def in_file(frame, name, write):
    """A frame written to a file of this name."""

    def path(folder):
        write(frame, folder / name)
        return str(folder / name)

    return path


def problems():
    """Name, data (or a function of a folder that writes it to a file), estimator, arguments of fit."""
    X = blobs()
    rng = np.random.default_rng(5)
    weights, groups = rng.integers(0, 4, len(X)).astype(float), np.array(list("abc"))[rng.integers(0, 3, len(X))]
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    units = blobs(d=6) * np.array([1e-3, 1.0, 1e3, 1.0, 50.0, 1e5])
    frame = pd.DataFrame(blobs(500, 4), columns=list("abcd")).assign(id=[f"r{i}" for i in range(500)])
    yield "array", X, MOSAIC(20), {}
    yield "roll", datasets.swiss_roll(600), MOSAIC(25), {}
    yield "single precision", X.astype(np.float32), MOSAIC(20), {}
    yield "whole numbers", np.rint(X * 3).astype(int), MOSAIC(20), {}
    yield "units 1e-15", X * 1e-15, MOSAIC(20), {}
    yield "units 1e20", X * 1e20, MOSAIC(20), {}
    yield "single precision, units 1e20", (X * 1e20).astype(np.float32), MOSAIC(20), {}
    yield "columns of different units", units, MOSAIC(15), {}
    yield "many rows", blobs(20_000, 3, outliers=40), MOSAIC(30), {}
    yield "embeddings", np.random.default_rng(2).normal(size=(300, 64)), MOSAIC(20), {}
    yield "duplicates", X[np.random.default_rng(3).integers(0, 150, 400)], MOSAIC(20), {}
    yield "words", words(), MOSAIC(12), {}
    yield "words, cosine", words(), MOSAIC(12, kernel="cosine"), {}
    yield "sparse, rbf", words(), MOSAIC(12, gamma=0.05, scale=False), {}
    yield "knee", X, MOSAIC(), {}
    yield "coverage", X, MOSAIC(coverage=0.9), {}
    yield "many picks", X, MOSAIC(len(X) // 4), {}
    yield "kept groups", X, MOSAIC(15, min_group=3), {}
    yield "contamination", X, MOSAIC(15, contamination=0.05), {}
    yield "outliers kept", X, MOSAIC(15, outliers="keep"), {}
    yield "weights", X, MOSAIC(15), {"sample_weight": weights}
    yield ("constraints", X, MOSAIC(15), {"must_include": [20, 21], "exclude": [30, 31, 32], "candidates": np.arange(10, 350)})
    yield "quotas", X, MOSAIC(15), {"groups": groups, "quotas": "equal"}
    yield "laplacian", X, MOSAIC(15, kernel="laplacian"), {}
    yield "polynomial", X, MOSAIC(15, kernel=Polynomial(degree=2)), {}
    yield "linear", blobs(d=8), MOSAIC(8, kernel="linear"), {}
    yield "diffusion", X, MOSAIC(15, kernel="diffusion"), {}
    yield "precomputed", K, MOSAIC(15, kernel="precomputed"), {}
    yield "median bandwidth", X, MOSAIC(15, gamma="median"), {}
    yield "counted bandwidth", X, MOSAIC(15, gamma=EffectiveCount(12.0)), {}
    yield "paper", X, MOSAIC(15, algorithm="paper"), {}
    yield "sketch", blobs(3000, 4, outliers=20), MOSAIC(20, algorithm=Paper(sketch=Sketch())), {}
    yield "customers", customers(400, missing=0.05), MOSAIC(15), {}
    yield "customers with odd rows", planted(0, 500)[0], MOSAICOutlierDetector(), {}
    yield "visits in csv", in_file(visits(300), "visits.csv", lambda f, p: f.to_csv(p, index=False)), MOSAIC(12), {}
    yield "parquet", in_file(frame, "points.parquet", lambda f, p: f.to_parquet(p)), MOSAIC(15), {}
    yield "array in a file", in_file(X, "points.npy", lambda x, p: np.save(p, x)), MOSAIC(15), {}
    yield "detector", X, MOSAICOutlierDetector(), {}
    yield "detector, weights", X, MOSAICOutlierDetector(contamination=0.03), {"sample_weight": weights}


def answer(data, model, arguments):
    """What a fit answers, as JSON."""
    with warnings.catch_warnings(record=True) as told, tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("always")
        model.fit(data(Path(folder)) if callable(data) else data, **arguments)
        odd = np.flatnonzero(model.is_outlier_)
        picks = [int(i) for i in getattr(model, "representative_indices_", [])]
        proof = getattr(model, "certificate_", None)  # a detector has none
        named = [name for name in ("gap", "bound", "value", "primal", "dual") if hasattr(proof, name)]
        rows = [*EXPLAINED, *picks[:1], *(int(i) for i in odd[:1])]
        found = {
            "picks": picks,
            "outliers": odd.tolist(),
            "threshold": float(model.selection_.cut.count),
            "counts": float(np.mean(model.effective_count_)),
            "certificate": {name: float(getattr(proof, name)) for name in named},
            "decisions": [str(sentence) for sentence in model.explain()],
            "reasons": [str(model.explain(row)) for row in rows],
        }
        if picks:
            found |= {"coverage": float(model.coverage_), "labels": [int(i) for i in model.labels_[:200]]}
    return found | {"warnings": [" ".join(str(one.message).split()) for one in told]}


def differences(before, now, where=""):
    """Places at which two answers differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before.keys() | now.keys():
            yield from differences(before.get(key), now.get(key), f"{where}/{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{where}/{place}")
    elif isinstance(before, float) and isinstance(now, float):
        tolerance = {"rel_tol": 1e-3, "abs_tol": 1e-3} if "/certificate/" in where else {"rel_tol": 1e-5}
        if not (math.isclose(before, now, **tolerance) or (math.isnan(before) and math.isnan(now))):
            yield f"{where}: {before} before, {now} now"
    elif before != now:
        yield f"{where}: {before} before, {now} now"


def main():
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--compare", metavar="FILE")
    args = parser.parse_args()
    print(f"mosaic {mosaic.__version__} in {Path(mosaic.__file__).parent}")
    found = {name: answer(*problem) for name, *problem in problems()}
    if args.write:
        Path(args.write).write_text(json.dumps(found, indent=1))
    if not args.compare:
        return 0
    before, wrong = json.loads(Path(args.compare).read_text()), 0
    for name, now in found.items():
        places = list(differences(before.get(name), json.loads(json.dumps(now))))
        wrong += bool(places)
        for place in places[:5]:
            print(f"{name}{place}"[:400])
    print(f"{len(found)} problems, {wrong} answered otherwise")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
