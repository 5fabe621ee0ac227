"""Fifty thousand embeddings: 50 picks, the seconds they take, how near the rows are to them, and how many topics they hit.

Data: 50,000 vectors of length 1 in 64 dimensions around 40 topics of 0.6 to 23 % of them, made on the spot; three draws.
Instead: apricot's facility location on 3000 random rows (all would need 20 GB); the rows nearest to centres of MiniBatchKMeans.
"""

import time

import numpy as np
from _jobs import facility_location, mean_of_draws, print_table
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin, pairwise_distances_argmin_min
from sklearn.preprocessing import normalize

from mosaic import MOSAIC

N, K = 50_000, 50


def nearest_to_means(X, seed):
    means = MiniBatchKMeans(K, batch_size=4096, n_init=3, random_state=seed).fit(X)
    return pairwise_distances_argmin(means.cluster_centers_, X)


def of_a_sample(X, seed):
    rows = np.random.default_rng(seed).choice(N, 3000, replace=False)
    picks = facility_location(X[rows], K)
    return None if picks is None else rows[picks]


@mean_of_draws
def figures(seed):
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, 41)
    topic = rng.choice(40, N, p=share / share.sum())
    X = normalize(rng.normal(size=(40, 64))[topic] + rng.normal(0, 0.8, (N, 64))).astype(np.float32)
    ways = {
        "MOSAIC": lambda: MOSAIC(K).fit(X).representative_indices_,
        "facility location, 3000 rows": lambda: of_a_sample(X, seed),
        "MiniBatchKMeans": lambda: nearest_to_means(X, seed),
        "random": lambda: rng.choice(N, K, replace=False),
    }
    if seed == 0:
        facility_location(X[:100], 5)  # the first call compiles
    lines = {}
    for name, choose in ways.items():
        start = time.perf_counter()
        picks = choose()
        seconds = time.perf_counter() - start
        lines[name] = None
        if picks is not None:
            distance = pairwise_distances_argmin_min(X, X[picks])[1].mean()
            lines[name] = {"seconds": seconds, "mean distance": distance, "topics of 40": len(set(topic[picks]))}
    return lines


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
