"""Summary of a mixed table: 12 rows that stand for 1500 customers, judged by Gower's distance to the nearest of them.

Data: numbers, categories, dates; made on the spot, three draws. The kind of customer (student, family, …) is hidden.
Instead: skrub's TableVectorizer, scaling and k-medoids; or random rows.
"""

import numpy as np
import pandas
from _jobs import customers, gower, k_medoids, mean_over_seeds, print_table
from sklearn.preprocessing import StandardScaler

from mosaic import MOSAIC

K = 12


def skrub_and_medoids(frame, seed):
    try:
        from skrub import TableVectorizer
    except ImportError:
        return None
    frame = frame.drop(columns="customer_id").assign(joined=pandas.to_datetime(frame["joined"]))
    return k_medoids(StandardScaler().fit_transform(TableVectorizer().fit_transform(frame)), K, seed)


def draw(seed):
    frame = customers(1500, seed)
    kind = frame.pop("kind").to_numpy()
    ways = {
        "MOSAIC": MOSAIC(K).fit(frame).representative_indices_,
        "skrub, k-medoids": skrub_and_medoids(frame, seed),
        "random": np.random.default_rng(seed).choice(1500, K, replace=False),
    }
    compared = frame.drop(columns="customer_id").assign(joined=pandas.to_datetime(frame["joined"]).astype("int64"))
    lines = {}
    for name, picks in ways.items():
        lines[name] = None
        if picks is not None:
            distance = gower(compared, picks)
            right = kind[picks][distance.argmin(axis=1)] == kind
            kinds = len(set(kind[picks]))
            lines[name] = {"Gower distance": distance.min(axis=1).mean(), "kind guessed": right.mean(), "kinds of 4": kinds}
    return lines


def figures():
    return mean_over_seeds(draw)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
