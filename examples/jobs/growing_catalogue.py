"""The catalogue grows: of 30 picks that people know, how many stay when a fifth more rows come, and what does that cost?

Data: 1200 digits and then 300 more, half of them of two new digits; three draws. Less distance to the nearest pick is better.
Instead: k-medoids again with the same seed, or started from the old medoids; or the old picks left as they are.
"""

import numpy as np
from _jobs import judge_each, k_medoids, mean_of_draws, print_table
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from mosaic import MOSAIC

K = 30


def from_the_old_medoids(X, old):
    import kmedoids

    return kmedoids.fasterpam(pairwise_distances(X), old.astype(np.uint64), n_cpu=1).medoids.astype(int)


@mean_of_draws
def figures(seed):
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
        "k-medoids again": None if medoids is None else (medoids, k_medoids(X, K, seed)),
        "k-medoids, old medoids": None if medoids is None else (medoids, from_the_old_medoids(X, medoids)),
        "old picks": (first, first),
    }

    def judge(picks):
        before, after = picks
        distance = pairwise_distances(X, X[after]).min(axis=1)
        stay = np.isin(before, after).sum()
        return {"picks that stay": stay, "distance": distance.mean(), "distance of new digits": distance[1350:].mean()}

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
