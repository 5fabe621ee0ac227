"""Data with a similarity of their own: what picks reach beside what users of such data take today.

Molecules need rdkit, whose 5000 of the NCI are used; series need tslearn, texts umap-learn and ``MOSAIC_DATA``, the folder
of the word counts. What is not installed is left out. BitBIRCH (bblean) and topics are clusters, whose number is not chosen:
the medoids of the 30 largest, at the threshold or smallest size that is best for them. Places are made up: 120 towns of
unequal size on both sides of the date line. Strings are made up: 40 words with typing errors. k = 30, five seeds.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import kmedoids
import numpy as np
from sklearn.metrics.pairwise import haversine_distances

from mosaic import MOSAIC

K, SEEDS = 30, range(5)
EARTH = 6371.0


def nearest(D: Any, picks: Any) -> float:
    return float(D[:, np.asarray(picks)].min(axis=1).mean())


def medoids(D: Any, seed: int) -> Any:
    return kmedoids.fasterpam(D, K, random_state=seed).medoids


def random(n: int, seed: int) -> Any:
    return np.random.default_rng(seed).choice(n, K, replace=False)


def medoids_of(clusters: Any, D: Any) -> Any:
    """The medoids of the largest clusters."""
    largest = sorted(clusters, key=len, reverse=True)[:K]
    return [members[D[np.ix_(members, members)].sum(axis=1).argmin()] for members in map(np.asarray, largest)]


Choice = dict[str, Callable[[int], Any]]


def molecules() -> Iterator[tuple[str, str, Any, Choice]]:
    """Distance 1 − Tanimoto similarity of Morgan fingerprints with 2048 bits."""
    import rdkit
    from rdkit import Chem, RDLogger
    from rdkit.Chem import rdFingerprintGenerator
    from rdkit.SimDivFilters.rdSimDivPickers import MaxMinPicker

    RDLogger.DisableLog("rdApp.*")
    lines = (Path(rdkit.__file__).parent / "Data" / "NCI" / "first_5K.smi").read_text().splitlines()
    known = [mol for line in lines if (mol := Chem.MolFromSmiles(line.split()[0])) is not None and mol.GetNumAtoms()]
    bits = list(map(rdFingerprintGenerator.GetMorganGenerator(fpSize=2048).GetFingerprint, known))
    X = np.array([list(each) for each in bits], np.uint8)
    shared = X.astype(np.float32) @ X.T.astype(np.float32)
    size = shared.diagonal()
    D = 1.0 - shared / (size[:, None] + size - shared)

    def max_min(seed: int) -> Any:
        return list(MaxMinPicker().LazyBitVectorPick(bits, len(bits), K, seed=seed))

    def bit_birch(seed: int) -> Any:
        from bblean import BitBirch

        order = np.random.default_rng(seed).permutation(len(X))
        found = []
        for threshold in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.65):
            tree = BitBirch(threshold=threshold).fit(X[order], input_is_packed=False)
            found.append(medoids_of([order[members] for members in tree.get_cluster_mol_ids()], D))
        return min(found, key=lambda picks: nearest(D, picks))

    yield (
        f"molecules, {len(X):,} fingerprints",
        "1 − Tanimoto similarity",
        D,
        {
            "MOSAIC, tanimoto": lambda seed: MOSAIC(K, kernel="tanimoto", random_state=seed).fit(X).representative_indices_,
            "MOSAIC, rbf": lambda seed: MOSAIC(K, random_state=seed).fit(X).representative_indices_,
            "RDKit's MaxMin": max_min,
            **({"BitBIRCH, 30 largest clusters": bit_birch} if find_spec("bblean") else {}),
            "k-medoids": lambda seed: medoids(D, seed),
            "random": lambda seed: random(len(X), seed),
        },
    )


def texts() -> Iterator[tuple[str, str, Any, Choice]]:
    """Posts of two newsgroups, as 100 directions of their weighted word counts, which all ways get as embeddings."""
    from sklearn.cluster import HDBSCAN, KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.preprocessing import normalize
    from umap import UMAP

    if "MOSAIC_DATA" not in os.environ:
        return
    with np.load(Path(os.environ["MOSAIC_DATA"]) / "text_basehock.npz") as file:
        counts = file["X"]
    weighted = TfidfTransformer().fit_transform(counts[counts.sum(axis=1) > 0])
    X = normalize(TruncatedSVD(100, random_state=0).fit_transform(weighted))
    D = np.clip(1.0 - X @ X.T, 0.0, None)

    def plane(seed: int) -> Any:
        return UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed).fit_transform(X)

    def topics(seed: int) -> Any:
        points = plane(seed)
        found = []
        for size in (5, 10, 15, 20):
            labels = HDBSCAN(min_cluster_size=size).fit_predict(points)
            found.append(medoids_of([np.flatnonzero(labels == label) for label in range(labels.max() + 1)], D))
        return min(found, key=lambda picks: nearest(D, picks))

    def means(seed: int) -> Any:
        labels = KMeans(K, random_state=seed).fit_predict(plane(seed))
        return medoids_of([np.flatnonzero(labels == label) for label in range(K)], D)

    yield (
        f"texts, {len(X):,} posts as embeddings",
        "1 − cosine",
        D,
        {
            "MOSAIC": lambda seed: MOSAIC(K, random_state=seed).fit(X).representative_indices_,
            "topics: UMAP, HDBSCAN": topics,
            "topics: UMAP, k-means": means,
            "k-medoids": lambda seed: medoids(D, seed),
            "random": lambda seed: random(len(X), seed),
        },
    )


def places() -> Iterator[tuple[str, str, Any, Choice]]:
    rng = np.random.default_rng(0)
    towns = np.column_stack([rng.uniform(-45, 60, 120), rng.uniform(120, 250, 120)])
    sizes = rng.zipf(1.6, 120).clip(max=200)
    some = rng.choice(120, 3000, p=sizes / sizes.sum())
    rows = towns[some] + rng.normal(size=(3000, 2)) * rng.uniform(0.2, 3.0, (120, 1))[some]
    rows[:, 1] = (rows[:, 1] + 180.0) % 360.0 - 180.0
    D = EARTH * haversine_distances(np.radians(rows))
    yield (
        "places, 3,000",
        "km",
        D,
        {
            "MOSAIC, haversine": lambda seed: MOSAIC(K, kernel="haversine", random_state=seed).fit(rows).representative_indices_,
            "MOSAIC, rbf on degrees": lambda seed: MOSAIC(K, random_state=seed).fit(rows).representative_indices_,
            "k-medoids, haversine": lambda seed: medoids(D, seed),
            "random": lambda seed: random(len(rows), seed),
        },
    )


def strings() -> Iterator[tuple[str, str, Any, Choice]]:
    rng = np.random.default_rng(0)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    words = ["".join(rng.choice(letters, rng.integers(6, 12))) for _ in range(40)]
    rows = []
    for word in rng.choice(words, 600):
        typed = list(word)
        for place in rng.choice(len(typed), rng.integers(0, 3), replace=False):
            typed[place] = rng.choice(letters)
        rows.append("".join(typed))
    D = np.array([[1.0 - SequenceMatcher(None, a, b).ratio() for b in rows] for a in rows])
    D = 0.5 * (D + D.T)
    yield (
        "strings, 600",
        "1 − ratio of difflib",
        D,
        {
            "MOSAIC, distances": lambda seed: MOSAIC(K, kernel="distances", random_state=seed).fit(D).representative_indices_,
            "k-medoids": lambda seed: medoids(D, seed),
            "random": lambda seed: random(len(D), seed),
        },
    )


def series() -> Iterator[tuple[str, str, Any, Choice]]:
    """Windows of length 60 of five shapes that are stretched in time; dynamic time warping of tslearn."""
    from tslearn.metrics import cdist_dtw

    rng = np.random.default_rng(0)
    time = np.linspace(0.0, 1.0, 60)
    shapes = rng.normal(size=(40, 6))
    rows = []
    for shape in rng.integers(0, 40, 500):
        warped = time ** rng.uniform(0.7, 1.4)
        rows.append(sum(a * np.sin(np.pi * (j + 1) * warped) for j, a in enumerate(shapes[shape])) + 0.1 * rng.normal(size=60))
    X = np.array(rows)
    D = cdist_dtw(X)
    yield (
        "series, 500 of length 60",
        "dynamic time warping",
        D,
        {
            "MOSAIC, distances": lambda seed: MOSAIC(K, kernel="distances", random_state=seed).fit(D).representative_indices_,
            "MOSAIC, values as columns": lambda seed: MOSAIC(K, random_state=seed).fit(X).representative_indices_,
            "k-medoids": lambda seed: medoids(D, seed),
            "random": lambda seed: random(len(X), seed),
        },
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore")
    found, needs = [], {molecules: "rdkit", texts: "umap", places: "kmedoids", strings: "kmedoids", series: "tslearn"}
    for data, package in needs.items():
        if find_spec(package) is None:
            print(f"{data.__name__}: {package} is not installed")
            continue
        for name, unit, D, choices in data():
            for how, choose in choices.items():
                values = [nearest(D, choose(seed)) for seed in SEEDS]
                found.append([name, unit, how, f"{np.mean(values):.4g}", f"{min(values):.4g} to {max(values):.4g}"])
                print(*found[-1], flush=True)
    columns = ["data", "distance to the nearest of 30 picks", "chosen by", "mean", "five seeds"]
    packages = ["numpy", "kmedoids", "rdkit", "bblean", "tslearn", "umap-learn"]
    text = [header("Data with a similarity of their own", packages), table(columns, found)]
    write("kinds.md", "\n\n".join(text))


if __name__ == "__main__":
    main()
