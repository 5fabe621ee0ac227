"""Twenty picks from five blobs and 8 gross outliers: how many are outliers, how near the others are to a pick, how long it takes.

Every method has its defaults; where it has none, see the notes. More data and methods are among the experiments.
"""

from __future__ import annotations

from report import header, seconds, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import time
from collections.abc import Callable
from statistics import mean, median

import kmedoids
import numpy as np
from apricot import FacilityLocationSelection
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin_min
from threadpoolctl import threadpool_limits

from mosaic import MOSAIC, datasets
from mosaic.arrays.blocks import FloatArray, IntArray

PICKS, DRAWS = 20, 20
#: Starts of k-medoids, of which the one with the lowest loss counts.
STARTS = 5
OURS = "MOSAIC"

NOTES = f"""\
{PICKS} picks. All methods see the same rows, in random order, and nobody is told how many outliers there are.

- MOSAIC is `MOSAIC({PICKS})`. k-medoids is `kmedoids.fasterpam` on Euclidean distances, the best of {STARTS} starts; all of them
  are in its seconds.
- Facility location is apricot's `FacilityLocationSelection`. It compiles anew for every fit, about a second of its time.
- Farthest points (greedy k-center) are plain NumPy. k-means++ is scikit-learn's seeding alone.
- Distance is that of inliers to the nearest pick, on average, divided by the same for MOSAIC's picks.
- Seconds are of processor time with one thread. Distances and seconds are medians over draws, the rest are means.
"""


def k_medoids(X: FloatArray, k: int, seed: int) -> IntArray:
    D = pairwise_distances(X)
    starts = [kmedoids.fasterpam(D, k, random_state=STARTS * seed + s, n_cpu=1) for s in range(STARTS)]
    return np.asarray(min(starts, key=lambda found: found.loss).medoids, np.intp)


def farthest_points(X: FloatArray, k: int, seed: int) -> IntArray:
    """Greedy k-center, argmax_i min_{j ∈ S} ‖x_i − x_j‖, from a random start."""
    picks = [int(own_generator(seed).integers(len(X)))]
    nearest = np.linalg.norm(X - X[picks[0]], axis=1)
    while len(picks) < k:
        picks.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.linalg.norm(X - X[picks[-1]], axis=1))
    return np.array(picks)


def own_generator(seed: int) -> np.random.Generator:
    """Not the one that the data of this seed came from: picks and rows would be drawn alike."""
    return np.random.default_rng((seed, PICKS))


METHODS: dict[str, Callable[[FloatArray, int, int], IntArray]] = {
    OURS: lambda X, k, seed: MOSAIC(k, random_state=seed).fit(X).representative_indices_,
    "k-medoids": k_medoids,
    "facility location": lambda X, k, seed: FacilityLocationSelection(k, random_state=seed).fit(X).ranking,
    "farthest points": farthest_points,
    "k-means++ seeds": lambda X, k, seed: kmeans_plusplus(X, k, random_state=seed)[1],
    "random": lambda X, k, seed: own_generator(seed).choice(len(X), k, replace=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one draw: only to see that it runs")
    draws = 1 if parser.parse_args().quick else DRAWS
    outliers, distances, spent = ({method: [] for method in METHODS} for _ in range(3))
    with threadpool_limits(1):
        for seed in range(draws):
            data = datasets.blobs_with_gross_outliers(random_state=seed)
            for method, choose in METHODS.items():
                start = time.process_time()
                picks = np.asarray(choose(data.X, PICKS, seed), np.intp)
                spent[method].append(time.process_time() - start)
                outliers[method].append(int(data.is_outlier[picks].sum()))
                nearest = pairwise_distances_argmin_min(data.X[~data.is_outlier], data.X[picks])[1]
                distances[method].append(float(nearest.mean()))
            print(f"draw {seed}: outliers among picks:", {m: outliers[m][-1] for m in METHODS}, flush=True)
    rows = []
    for method in METHODS:
        found = outliers[method]
        relative = median(a / b for a, b in zip(distances[method], distances[OURS], strict=True))
        rows.append(
            [
                method,
                f"{mean(found):.3g}",
                f"{min(found)}–{max(found)}",
                f"{found.count(0)} of {len(found)}",
                f"{relative:.2f}",
                seconds(median(spent[method])),
                f"{median(spent[method]) / median(spent[OURS]):.3g}",
            ]
        )
    head = ["method", "outliers of 8, mean", "least–most", "draws without any", "inliers' distance / MOSAIC's"]
    found = table([*head, "seconds", "seconds / MOSAIC's"], rows)
    packages = ["numpy", "scipy", "scikit-learn", "kmedoids", "apricot-select"]
    title = f"## Five blobs and 8 gross outliers, {draws} draws\n\n"
    write("selectors.md", header("Twenty picks among outliers", packages) + "\n" + NOTES + "\n" + title + found)


if __name__ == "__main__":
    main()
