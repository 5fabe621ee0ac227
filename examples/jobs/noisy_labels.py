"""A training set of 5 % from noisy labels: the accuracy of the nearest kept row on new rows.

Data: USPS digits, or scikit-learn's, a tenth of the labels spoiled; 1200 rows to train, 500 to test, 60 kept; three splits.
Instead: k-medoids or random rows in each class; or no selection at all, with one neighbour or with five.
"""

import numpy as np
from _jobs import judge_each, k_medoids, mean_of_draws, print_table, real_data
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from mosaic import MOSAICSampler


@mean_of_draws
def figures(seed):
    rng = np.random.default_rng(seed)
    usps = real_data("usps.npz")
    if usps:
        X, y = np.load(usps)["X2000"].reshape(-1, 256) / 2000, np.load(usps)["y"].astype(int)
    else:
        X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, train_size=1200, test_size=500, random_state=seed, stratify=y)
    right = y.copy()
    wrong = rng.choice(1200, 120, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 10, 120)) % 10

    def in_each_class(choose):
        rows = [np.flatnonzero(y == label) for label in range(10)]
        picks = [choose(X[members], round(0.05 * len(members))) for members in rows]
        return None if picks[0] is None else np.concatenate([m[p] for m, p in zip(rows, picks, strict=True)])

    sampler = MOSAICSampler(0.05)
    sampler.fit_resample(X, y)
    ways = {
        "MOSAICSampler": sampler.sample_indices_,
        "k-medoids in each class": in_each_class(lambda X, k: k_medoids(X, k, seed)),
        "random in each class": in_each_class(lambda X, k: rng.choice(len(X), k, replace=False)),
        "all rows": np.arange(1200),
    }

    def judge(picks, neighbours=1):
        accuracy = KNeighborsClassifier(neighbours).fit(X[picks], y[picks]).score(X_test, y_test)
        return {"rows": len(picks), "wrong labels kept": (right != y)[picks].sum(), "accuracy": accuracy}

    return judge_each(ways, judge) | {"all rows, 5 neighbours": judge(np.arange(1200), 5)}


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
