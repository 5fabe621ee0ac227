"""How tight the certificate is and what it takes beside the fit, and what it says of choices that others made.

One thread, processor seconds; the least of three repetitions up to 3000 rows. Real sets need the files of ``experiments``.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs, make_swiss_roll

from mosaic import MOSAIC

NUMBERS = (10, 30, 100)
#: The ten sets of docs/how_well_we_choose.md, at most so many rows of each.
SETS = ("digits", "isolet", "orl", "pbmc", "basehock", "usps", "mnist", "yaleb", "cifar10", "olivetti")
MOST_ROWS = 2000
SIZES = (300, 1000, 3000, 10_000)


def made_up() -> Iterator[tuple[str, Any]]:
    yield "digits", load_digits().data
    yield "cancer", load_breast_cancer().data
    yield "normal, 16 columns", np.random.default_rng(0).normal(size=(1000, 16))
    yield "normal, 10 columns", np.random.default_rng(0).normal(size=(5000, 10))
    yield "swiss roll", make_swiss_roll(3000, random_state=0)[0]
    for n in SIZES:
        yield "blobs, 16 columns", make_blobs(n, 16, centers=12, random_state=0)[0]


def real() -> Iterator[tuple[str, Any]]:
    from experiments.datasets.real import load

    for name in SETS:
        X = load(name).X
        rows = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
        yield f"{name} (set)", X[rows]


def measured(X: Any, k: int) -> tuple[float, float, Any]:
    """Seconds of a fit and of its certificate, and the certificate."""
    fits, proofs = [], []
    for _ in range(3 if len(X) <= 3000 else 1):
        start = time.process_time()
        model = MOSAIC(k, n_jobs=1).fit(X)
        fits.append(time.process_time() - start)
        start = time.process_time()
        certificate = model.certificate_
        proofs.append(time.process_time() - start)
    return min(fits), min(proofs), certificate


def gaps(data: list[tuple[str, Any]]) -> str:
    rows, ratios, missed = [], [], []
    for name, X in data:
        for k in NUMBERS:
            fit, proof, certificate = measured(X, k)
            ratios.append(proof / fit)
            missed.append(certificate.gap)
            best = "proven best" if certificate.is_best else f"{100 * certificate.gap:.2f} %"
            random = f"{100 * (1 - certificate.random / certificate.value):.0f} %"
            rows.append([name, f"{len(X):,}", k, best, random, f"{fit:.2f}", f"{proof:.2f}", f"{proof / fit:.2f}"])
            print(*rows[-1], flush=True)
    found = table(
        ["data", "rows", "k", "gap", "random choices below", "fit, s", "certificate, s", "ratio"],
        [[str(cell) for cell in row] for row in rows],
    )
    gap = f"Gap: median {100 * np.median(missed):.2f} %, largest {100 * max(missed):.2f} %."
    return f"{found}\n\n{gap} Certificate / fit: median {np.median(ratios):.2f}, largest {max(ratios):.2f}."


def choices_of(X: Any, k: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Rows that others choose: at random, by k-medoids, farthest points, the seeds of k-means++."""
    import kmedoids
    from scipy.spatial.distance import cdist
    from sklearn.cluster import kmeans_plusplus

    rng = np.random.default_rng(seed)
    yield "random", rng.choice(len(X), k, replace=False)
    yield "k-means++", kmeans_plusplus(X, k, random_state=seed)[1]
    D = cdist(X, X)
    yield "k-medoids", kmedoids.fasterpam(D, k, random_state=seed).medoids
    picks = [int(D.sum(axis=1).argmin())]
    while len(picks) < k:
        picks.append(int(D[:, picks].min(axis=1).argmax()))
    yield "farthest points", np.array(picks)


def others(data: list[tuple[str, Any]], k: int = 20) -> str:
    """The certificates of five choices of each set, and whether their order is that of the cover."""
    rows = []
    for name, X in data:
        model = MOSAIC(k, n_jobs=1).fit(X)
        found = {"MOSAIC": model.certify()}
        found |= {how: model.certify(np.asarray(picks)) for how, picks in choices_of(X, k, 0)}
        for how, certificate in found.items():
            gap = f"{100 * certificate.shortfall:.1f} to {100 * certificate.gap:.1f} %"
            rows.append([name, how, f"{certificate.value:.4f}", gap, str(certificate)])
        values = [certificate.value for certificate in found.values()]
        shares = [certificate.gap for certificate in found.values()]
        assert np.argsort(values).tolist() == np.argsort(shares)[::-1].tolist(), name
    return table(["data", "choice", "mean similarity", "below the best by", "what the certificate says"], rows)


def all_rows(sizes: list[int]) -> str:
    """What is proven with 95 % confidence where a sample was compared: normal rows, and twelve clusters."""
    rows = []
    for n in sizes:
        data = {
            "normal": np.random.default_rng(0).normal(size=(n, 20)),
            "blobs": make_blobs(n, 20, centers=12, random_state=0)[0],
        }
        for (name, X), k in product(data.items(), (20, 100)):
            start = time.process_time()
            model = MOSAIC(k, n_jobs=1).fit(X)
            fit = time.process_time() - start
            proof = model.certify(all_rows=True)
            proven = f"{100 * (1 - proof.gap):.1f} %"
            rows.append([name, f"{n:,}", str(k), proven, f"{fit:.1f}", f"{time.process_time() - start - fit:.0f}", str(proof)])
            print(*rows[-1], flush=True)
    return table(["data, 20 columns", "rows", "k", "of the best", "fit, s", "proof, s", "what the certificate says"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", action="store_true", help="the ten sets, too")
    parser.add_argument("--all-rows", type=int, nargs="*", help="instead: proofs for so many rows, all of them compared")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.all_rows:
        write(
            "certificates_all_rows.md",
            "\n\n".join([header("Certificates for all rows", ["numpy"]), all_rows(arguments.all_rows)]),
        )
        raise SystemExit
    data = list(made_up())
    everything = [*data, *(real() if arguments.real else ())]
    text = [header("Certificates", ["numpy", "kmedoids"]), gaps(everything), "## Choices of others, k = 20", others(data[:5])]
    write("certificates.md", "\n\n".join(text))
