"""Outliers that eat the budget: how many of 20 picks are gross outliers, and how well the others are covered.

Data: five blobs with 8 gross outliers in 400 points, and digits with 30 images of noise among 600; three draws each.
Instead: k-medoids, apricot's facility location, farthest points.
"""

import numpy as np
from _jobs import facility_location, k_medoids, mean_of_draws, print_table
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from mosaic import MOSAIC, datasets

K = 20


def farthest_points(X, k):
    picks = [0]
    nearest = pairwise_distances(X, X[:1])[:, 0]
    while len(picks) < k:
        picks.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, pairwise_distances(X, X[picks[-1:]])[:, 0])
    return np.array(picks)


@mean_of_draws
def figures(seed):
    blobs = datasets.blobs_with_gross_outliers(random_state=seed)
    digits = np.random.default_rng(seed).permutation(load_digits().data)[:570]
    digits = np.vstack([digits, datasets.noise_images(30, digits, random_state=seed)])
    ways = {
        "MOSAIC": lambda X: MOSAIC(K).fit(X).representative_indices_,
        "k-medoids": lambda X: k_medoids(X, K, seed),
        "facility location": lambda X: facility_location(X, K),
        "farthest points": lambda X: farthest_points(X, K),
    }
    lines = {}
    for name, choose in ways.items():
        of_blobs, of_digits = choose(blobs.X), choose(digits)
        lines[name] = None
        if of_blobs is not None:
            lines[name] = {
                "outliers picked, blobs": int(blobs.is_outlier[of_blobs].sum()),
                "distance": pairwise_distances(blobs.X[~blobs.is_outlier], blobs.X[of_blobs]).min(axis=1).mean(),
                "noise picked, digits": int((of_digits >= 570).sum()),
                "distance ": pairwise_distances(digits[:570], digits[of_digits]).min(axis=1).mean(),
            }
    return lines


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
