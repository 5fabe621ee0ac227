"""Twenty picks from data with outliers: how many are outliers, how near the others are to a pick, how long it takes.

First the example of the README, five blobs and 8 gross outliers, on twenty draws. Then a swiss roll and handwritten
digits with outliers of six kinds, and without any. Every method has its defaults; where it has none, see the notes.
"""

from __future__ import annotations

from report import header, seconds, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import TypeAlias

import kmedoids
import numpy as np
from apricot import FacilityLocationSelection
from sklearn.cluster import kmeans_plusplus
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin_min
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from mosaic import MOSAIC, ConvergenceWarning, datasets
from mosaic.arrays.blocks import FloatArray, IntArray
from mosaic.arrays.codes import BoolArray

PICKS = 20
GROSS_SEEDS, SEEDS = 20, 3
#: Starts of k-medoids, of which the one with the lowest loss counts.
STARTS = 5
SWISS_SIZE, SWISS_DIMENSION, DIGITS_SIZE = 300, 10, 600
RATIOS = (0.1, 0.5)
#: Kinds of outliers, by the names of ``datasets.contaminate``.
KINDS = {
    "uniform": "uniform",
    "repetitive": "repetitive",
    "clustered": "clustered",
    "heavy-tailed": "heavy-tailed",
    "shuffled": "shuffled",
    "noise images": "images",
}
#: Distances that differ by less than this, relatively, are called equal; and so are accuracies.
SAME = 0.01

OURS, PAPER = "MOSAIC", "MOSAIC, paper mode"


# --- Methods: from points, a number and a seed to rows


def mosaic_default(X: FloatArray, k: int, seed: int) -> IntArray:
    return MOSAIC(k, random_state=seed).fit(X).representative_indices_


def mosaic_paper(X: FloatArray, k: int, seed: int) -> IntArray:
    """Algorithm 1 as written finds a number of its own; k is the most that it may be."""
    return MOSAIC(k, algorithm="paper", random_state=seed).fit(X).representative_indices_


def k_medoids(X: FloatArray, k: int, seed: int) -> IntArray:
    """FasterPAM on Euclidean distances, the best of a few starts."""
    D = pairwise_distances(X)
    starts = [kmedoids.fasterpam(D, k, random_state=STARTS * seed + s, n_cpu=1) for s in range(STARTS)]
    return np.asarray(min(starts, key=lambda found: found.loss).medoids, np.intp)


def facility_location(X: FloatArray, k: int, seed: int) -> IntArray:
    return np.asarray(FacilityLocationSelection(k, random_state=seed).fit(X).ranking, np.intp)


def farthest_points(X: FloatArray, k: int, seed: int) -> IntArray:
    """Greedy k-center, argmax_i min_{j ∈ S} ‖x_i − x_j‖, from a random start."""
    picks = [int(own_generator(seed).integers(len(X)))]
    nearest = np.linalg.norm(X - X[picks[0]], axis=1)
    while len(picks) < k:
        picks.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.linalg.norm(X - X[picks[-1]], axis=1))
    return np.array(picks)


def pivoted_cholesky(X: FloatArray, k: int, seed: int) -> IntArray:
    """Greedy argmax of the residual diagonal of exp(−‖x − y‖² / median): column-pivoted QR in feature space."""
    D = pairwise_distances(X, metric="sqeuclidean")
    similarity = np.exp(-D / np.median(D[np.triu_indices(len(X), 1)]))
    left, columns, picks = np.ones(len(X)), np.zeros((len(X), k)), []
    for step in range(k):
        pivot = int(left.argmax())
        column = similarity[:, pivot] - columns[:, :step] @ columns[pivot, :step]
        columns[:, step] = column / np.sqrt(left[pivot])
        left -= columns[:, step] ** 2
        left[pivot] = -np.inf  # never again, whatever rounding leaves
        picks.append(pivot)
    return np.array(picks)


def k_means_seeding(X: FloatArray, k: int, seed: int) -> IntArray:
    return kmeans_plusplus(X, k, random_state=seed)[1]


def at_random(X: FloatArray, k: int, seed: int) -> IntArray:
    return own_generator(seed).choice(len(X), k, replace=False)


def own_generator(seed: int) -> np.random.Generator:
    """Not the one that the data of this seed came from: picks and rows would be drawn alike."""
    return np.random.default_rng((seed, PICKS))


METHODS: dict[str, Callable[[FloatArray, int, int], IntArray]] = {
    OURS: mosaic_default,
    PAPER: mosaic_paper,
    "k-medoids": k_medoids,
    "facility location": facility_location,
    "farthest points": farthest_points,
    "pivoted Cholesky": pivoted_cholesky,
    "k-means++ seeds": k_means_seeding,
    "random": at_random,
}


# --- Data


@dataclass(frozen=True)
class Case:
    """Points, who is an outlier, and for digits what they show and digits that were left aside."""

    data: str
    kind: str
    ratio: float
    seed: int
    X: FloatArray
    is_outlier: BoolArray
    labels: IntArray | None = None
    held_out: tuple[FloatArray, IntArray] | None = None

    @property
    def name(self) -> str:
        """A line of the tables."""
        return f"{self.data}, {self.kind}" + (f", {self.ratio:g}" if self.ratio else "")


def gross(seed: int) -> Case:
    """The example of the README."""
    found = datasets.blobs_with_gross_outliers(random_state=seed)
    return Case("blobs", "gross", 0.0, seed, found.X, found.is_outlier)


def spoiled(data: str, kind: str, ratio: float, seed: int) -> Case:
    """Inliers of one draw, outliers added, rows mixed."""
    rng = np.random.default_rng(seed)
    labels = held_out = None
    if data == "swiss roll":
        rolled = datasets.swiss_roll(SWISS_SIZE, random_state=rng)
        X = datasets.embed(rolled, SWISS_DIMENSION, random_state=rng)
    else:
        images, shown = load_digits(return_X_y=True)
        rows = rng.permutation(len(images))
        X, labels = images[rows[:DIGITS_SIZE]], shown[rows[:DIGITS_SIZE]]
        held_out = images[rows[DIGITS_SIZE:]], shown[rows[DIGITS_SIZE:]]
    n = len(X)
    if ratio:
        noise = datasets.noise_images(n, X, random_state=rng) if KINDS[kind] == "images" else None
        # Unmixed first, so that labels keep their rows.
        options = {"kind": KINDS[kind], "images": noise, "shuffle": False, "random_state": rng}
        X = datasets.contaminate(X, ratio, **options).X
    order = rng.permutation(len(X))
    if labels is not None:
        labels = np.concatenate([labels, np.full(len(X) - n, -1)])[order]
    return Case(data, kind, ratio, seed, X[order], order >= n, labels, held_out)


def spoiled_cases(seeds: int) -> Iterator[Case]:
    """All data, kinds and ratios, the clean data first."""
    for data in ("swiss roll", "digits"):
        for kind, ratio in [("clean", 0.0), *((kind, ratio) for kind in KINDS for ratio in RATIOS)]:
            for seed in range(seeds):
                yield spoiled(data, kind, ratio, seed)


# --- Measuring


@dataclass(frozen=True)
class Outcome:
    """What one method did on one case; ``accuracy`` is that of 1-NN with the labels of the inliers among the picks."""

    case: Case
    seconds: float
    picks: int
    outliers: int
    distance: float
    accuracy: float

    @property
    def share(self) -> float:
        """Outliers among the picks."""
        return self.outliers / self.picks


def measure(case: Case, method: str) -> Outcome:
    """One run and its judgement."""
    start = time.process_time()
    picks = METHODS[method](case.X, PICKS, case.seed)
    spent = time.process_time() - start
    distance = pairwise_distances_argmin_min(case.X[~case.is_outlier], case.X[picks])[1].mean()
    accuracy = float("nan")
    if case.held_out is not None and case.labels is not None:
        inliers = picks[~case.is_outlier[picks]]
        classifier = KNeighborsClassifier(1)
        accuracy = classifier.fit(case.X[inliers], case.labels[inliers]).score(*case.held_out) if len(inliers) else 0.0
    return Outcome(case, spent, len(picks), int(case.is_outlier[picks].sum()), float(distance), accuracy)


#: The outcomes of each method on one case, one for each draw; what is made of them; and the outcomes on all cases.
Outcomes: TypeAlias = dict[str, list[Outcome]]
Measure: TypeAlias = Callable[[Outcomes, str], float]
Results: TypeAlias = dict[str, Outcomes]


def measure_all(cases: Iterator[Case]) -> Results:
    """Outcomes by case and method, one for each seed."""
    results: Results = {}
    for case in cases:
        here = results.setdefault(case.name, {method: [] for method in METHODS})
        for method in METHODS:
            here[method].append(measure(case, method))
        told = ", ".join(f"{method} {here[method][-1].outliers}/{here[method][-1].picks}" for method in METHODS)
        print(f"{case.name}, seed {case.seed}: outliers among picks: {told}", flush=True)
    return results


def relative_distance(outcomes: Outcomes, method: str) -> float:
    """Median of the method's distances over ours, on the same draws."""
    return median(a.distance / b.distance for a, b in zip(outcomes[method], outcomes[OURS], strict=True))


def share(outcomes: Outcomes, method: str) -> float:
    """Mean share of outliers among the picks."""
    return mean(outcome.share for outcome in outcomes[method])


def accuracy(outcomes: Outcomes, method: str) -> float:
    """Mean accuracy of 1-NN, 0 for picks without an inlier; nan where there are no labels."""
    return mean(outcome.accuracy for outcome in outcomes[method])


# --- Report


def gross_table(outcomes: Outcomes) -> str:
    """The README's example."""
    rows = []
    ours = median(outcome.seconds for outcome in outcomes[OURS])
    for method in METHODS:
        found = outcomes[method]
        picked = [outcome.outliers for outcome in found]
        spent = median(outcome.seconds for outcome in found)
        rows.append(
            [
                method,
                f"{mean(outcome.picks for outcome in found):.3g}",
                f"{mean(picked):.3g}",
                f"{min(picked)}–{max(picked)}",
                f"{sum(number == 0 for number in picked)} of {len(picked)}",
                f"{relative_distance(outcomes, method):.2f}",
                seconds(spent),
                f"{spent / ours:.3g}",
            ]
        )
    head = ["method", "picks", "outliers of 8, mean", "least–most", "draws without any"]
    return table([*head, "inliers' distance / MOSAIC's", "seconds", "seconds / MOSAIC's"], rows)


def grid(results: Results, cell: Callable[[Outcomes, str], str]) -> str:
    """A line for each case, a column for each method."""
    return table(
        ["data, outliers, ratio", *METHODS], [[name, *(cell(o, m) for m in METHODS)] for name, o in results.items()]
    )


def tally(results: Results, spoilt: Results) -> str:
    """How often each method did better than MOSAIC, as well, and worse, by each measure."""

    def count(cases: Results, gain: Callable[[Outcomes], float], same: float) -> str:
        known = [g for g in map(gain, cases.values()) if g == g]
        better, worse = sum(g > same for g in known), sum(g < -same for g in known)
        return f"{better} / {len(known) - better - worse} / {worse}"

    rows = []
    for m in (method for method in METHODS if method != OURS):
        fewer = count(spoilt, lambda o, m=m: share(o, OURS) - share(o, m), 1e-9)
        closer = count(results, lambda o, m=m: 1.0 - relative_distance(o, m), SAME)
        surer = count(results, lambda o, m=m: accuracy(o, m) - accuracy(o, OURS), SAME)
        rows.append([m, fewer, closer, surer])
    return table(["better / equal / worse than MOSAIC", "outliers", "distance", "1-NN accuracy"], rows)


def lost(results: Results, measure_: Measure, same: float, sign: int, text: Callable[[float], str]) -> str:
    """The cases in which somebody did better than MOSAIC, and who did best; ``sign`` is −1 if less is better."""
    lines = []
    for name, outcomes in results.items():
        best = max((m for m in METHODS if m != OURS), key=lambda m: sign * measure_(outcomes, m))
        theirs, ours = measure_(outcomes, best), measure_(outcomes, OURS)
        if sign * (theirs - ours) > same:
            lines.append(f"- {name}: {text(theirs)} ({best}) against {text(ours)}")
    return "\n".join(lines) + "\n" if lines else "- none\n"


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def share_of_picks(outcomes: Outcomes, method: str) -> str:
    """The share, and of how many where they are not all that were asked for."""
    picks = mean(outcome.picks for outcome in outcomes[method])
    return percent(share(outcomes, method)) + (f" of {picks:.3g}" if picks < PICKS else "")


def times_table(results: Results) -> str:
    """Median seconds by data, all kinds together, and relative to ours."""
    rows = []
    for data in dict.fromkeys(name.split(",")[0] for name in results):
        per_method = {
            m: median(o.seconds for name, all_ in results.items() if name.startswith(data) for o in all_[m])
            for m in METHODS
        }
        rows.append([f"{data}, seconds", *(seconds(value) for value in per_method.values())])
        rows.append([f"{data}, seconds / MOSAIC's", *(f"{v / per_method[OURS]:.3g}" for v in per_method.values())])
    return table(["data", *METHODS], rows)


def notes(warned: int) -> str:
    """How it was measured."""
    return f"""\
{PICKS} picks. All methods see the same rows, in random order, and nobody is told how many outliers there are.

- MOSAIC is `MOSAIC({PICKS})`; paper mode is `MOSAIC({PICKS}, algorithm="paper")`, which picks as many as Algorithm 1 leaves and
  at most {PICKS}, so that a share of its picks can be a share of few.
- k-medoids is `kmedoids.fasterpam` on Euclidean distances, the best of {STARTS} starts; all starts are in its seconds.
- Facility location is apricot's `FacilityLocationSelection`. It compiles anew for every fit, about a second of its
  time whatever the size.
- Farthest points (greedy k-center) and pivoted Cholesky (of exp(−‖x − y‖²/median squared distance); the
  same as column-pivoted QR in feature space) are plain NumPy. k-means++ is scikit-learn's seeding alone.
- Distance is that of inliers to the nearest pick, on average, divided by the same for MOSAIC's picks; medians over draws.
  Below 1 is closer than MOSAIC. k-medoids minimises just this, over outliers as well.
- 1-NN accuracy is on the digits that were left aside, with the labels of the inliers among the picks; outliers are
  dropped, and without an inlier it is 0.
- Seconds are of processor time, since the machine was shared with other work; one thread, medians over draws. The rest are
  means. Equal means within a hundredth (distance) or a point (accuracy).
- MOSAIC warned of an unreached tolerance in {warned} fits.
"""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one draw of everything: only to see that it runs")
    return parser.parse_args()


def main() -> None:
    """Measure and write benchmarks/results/selectors.md."""
    options = arguments()
    gross_seeds, seeds = (1, 1) if options.quick else (GROSS_SEEDS, SEEDS)
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for method in METHODS:  # load and compile once
            measure(gross(gross_seeds), method)
        first = measure_all(gross(seed) for seed in range(gross_seeds))
        second = measure_all(spoiled_cases(seeds))
    warned = sum(issubclass(w.category, ConvergenceWarning) for w in caught)
    spoilt = {name: outcomes for name, outcomes in second.items() if "clean" not in name}
    digits = {name: outcomes for name, outcomes in second.items() if name.startswith("digits")}
    packages = ["numpy", "scipy", "scikit-learn", "kmedoids", "apricot-select", "numba"]
    parts = [header(f"{PICKS} picks from data with outliers", packages), notes(warned)]
    parts += [f"## Five blobs and 8 gross outliers, {gross_seeds} draws\n", gross_table(next(iter(first.values())))]
    parts += [
        f"## Outliers of six kinds, {seeds} draws each\n",
        f"{SWISS_SIZE} points of a swiss roll in {SWISS_DIMENSION} dimensions, {DIGITS_SIZE} of scikit-learn's digits; "
        "the ratio is that of outliers to inliers.\n",
        "### Share of picks that are outliers\n",
        grid(spoilt, share_of_picks),
        "### Distance of inliers to the nearest pick, relative to MOSAIC's\n",
        grid(second, lambda o, m: f"{relative_distance(o, m):.2f}"),
        "### 1-NN accuracy on digits left aside\n",
        grid(digits, lambda o, m: percent(accuracy(o, m))),
        "### Who did better, and where MOSAIC loses\n",
        f"Number of cases, of the {len(spoilt)} with outliers; distance and accuracy also of the clean ones.\n",
        tally(second, spoilt),
        "Fewer outliers than MOSAIC, and who had the fewest:\n",
        lost(spoilt, share, 1e-9, -1, percent),
        "Higher accuracy than MOSAIC's, and whose was the highest:\n",
        lost(digits, accuracy, SAME, 1, percent),
        "Inliers nearer to a pick than to MOSAIC's by more than 2 %, and who was nearest, relative to MOSAIC:\n",
        lost(second, relative_distance, 2 * SAME, -1, lambda value: f"{value:.2f}"),
        "### Seconds\n",
        times_table(second),
    ]
    write("selectors.md", "\n".join(parts))


if __name__ == "__main__":
    main()
