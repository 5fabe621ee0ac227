"""Rare kinds of cells: of the types with fewer than 5 % of the cells, how many have a pick among 30?

Data: 700 blood cells of 10 types (PBMC, 50 principal components), or as many made on the spot; three draws of 600 cells.
Instead: k-medoids, apricot's facility location, or a random choice.
"""

import numpy as np
from _jobs import facility_location, judge_each, k_medoids, mean_of_draws, print_table, real_data

from mosaic import MOSAIC

K = 30


def cells(rng):
    stored = real_data("pbmc68k_reduced.npz")
    if stored:
        X, kind = np.load(stored)["X_pca"], np.load(stored)["y"]
    else:
        kind = np.repeat(np.arange(10), [240, 180, 100, 70, 40, 25, 15, 12, 10, 8])
        X = rng.normal(0, 1, (10, 50))[kind] + rng.normal(0, 0.6, (700, 50))
    rows = rng.choice(700, 600, replace=False)
    return X[rows], kind[rows]


@mean_of_draws
def figures(seed):
    rng = np.random.default_rng(seed)
    X, kind = cells(rng)
    size = np.bincount(kind, minlength=10)
    rare = np.flatnonzero((size > 0) & (size < 30))
    ways = {
        "MOSAIC": MOSAIC(K).fit(X).representative_indices_,
        "MOSAIC, min_group=5": MOSAIC(K, min_group=5).fit(X).representative_indices_,
        "k-medoids": k_medoids(X, K, seed),
        "facility location": facility_location(X, K),
        "random": rng.choice(600, K, replace=False),
    }

    def judge(picks):
        kept = np.isin(rare, kind[picks]).sum()
        return {"rare types": len(rare), "rare types kept": kept, "types of 10": len(set(kind[picks]))}

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
