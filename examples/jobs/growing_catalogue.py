"""The catalogue grows: of 30 picks that people know, how many stay when a fifth more rows come, and what does that cost?

Data: 1200 digits and then 300 more, half of them of two new digits; three draws. Less distance to the nearest pick is better.
Instead: k-medoids again with the same seed, or started from the old medoids; or the old picks left as they are.
"""

import numpy as np
from _jobs import k_medoids, mean_over_seeds, print_table
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from mosaic import MOSAIC

K = 30


def from_the_old_medoids(X, old):
    try:
        import kmedoids
    except ImportError:
        return None
    return kmedoids.fasterpam(pairwise_distances(X), old.astype(np.uint64), n_cpu=1).medoids.astype(int)


def draw(seed):
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    known, new = rng.permutation(np.flatnonzero(y < 8)), rng.permutation(np.flatnonzero(y >= 8))
    X = X[np.concatenate([known[:1200], known[1200:1350], new[:150]])]
    model = MOSAIC(K).fit(X[:1200])
    medoids = k_medoids(X[:1200], K, seed)
    first = model.representative_indices_
    ways = {
        "MOSAIC, start=": (first, MOSAIC(K).fit(X, start=model).representative_indices_),
        "MOSAIC again": (first, MOSAIC(K).fit(X).representative_indices_),
        "k-medoids again": (medoids, k_medoids(X, K, seed)),
        "k-medoids, old medoids": (medoids, None if medoids is None else from_the_old_medoids(X, medoids)),
        "old picks": (first, first),
    }
    lines = {}
    for name, (before, after) in ways.items():
        lines[name] = None
        if after is not None:
            distance = pairwise_distances(X, X[after]).min(axis=1)
            lines[name] = {"picks that stay": np.isin(before, after).sum(), "distance": distance.mean()}
            lines[name] |= {"distance of new digits": distance[1350:].mean()}
    return lines


def figures():
    return mean_over_seeds(draw)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
