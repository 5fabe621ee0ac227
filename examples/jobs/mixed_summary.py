"""Summary of a mixed table: 12 rows that stand for 1500 customers, judged by Gower's distance to the nearest of them.

Data: numbers, categories, dates; made on the spot, three draws. The kind of customer (student, family, …) is hidden.
Instead: skrub's TableVectorizer, scaling and k-medoids; or random rows.
"""

import numpy as np
import pandas
from _jobs import customers, gower, judge_each, k_medoids, mean_of_draws, print_table
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


@mean_of_draws
def figures(seed):
    frame = customers(1500, seed)
    kind = frame.pop("kind").to_numpy()
    ways = {
        "MOSAIC": MOSAIC(K).fit(frame).representative_indices_,
        "skrub, k-medoids": skrub_and_medoids(frame, seed),
        "random": np.random.default_rng(seed).choice(1500, K, replace=False),
    }
    compared = frame.drop(columns="customer_id").assign(joined=pandas.to_datetime(frame["joined"]).astype("int64"))

    def judge(picks):
        distance = gower(compared, picks)
        right = kind[picks][distance.argmin(axis=1)] == kind
        return {"distance": distance.min(axis=1).mean(), "kind guessed": right.mean(), "kinds of 4": len(set(kind[picks]))}

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
