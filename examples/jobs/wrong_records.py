"""Wrong records in a mixed customer table of 5000 rows, 12 of which were spoiled in twelve ways.

Data: made on the spot, three draws: numbers, categories, dates and ids; ten errors are in a cell, two in a combination of cells.
Instead: isolation forest, LOF and the distance to the tenth neighbour, after skrub's TableVectorizer and scaling.
"""

import numpy as np
import pandas
from _jobs import customers, mean_of_draws, print_table
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mosaic import MOSAICOutlierDetector

ERRORS = [
    {"age": 999}, {"age": -1}, {"income": 0}, {"income": -30_000}, {"income": 9_900_000}, {"orders": 900},
    {"joined": "1900-01-01"}, {"joined": "2024-13-45"}, {"city": "Atlantis"}, {"segment": "bsaic"},
    {"age": 19, "income": 160_000, "segment": "premium", "orders": 0},  # each value is usual, together they are not
    {"age": 90, "income": 15_000, "segment": "premium", "orders": 40},
]  # fmt: skip


def vectors(frame):
    """The table as numbers, or None if skrub is not installed."""
    try:
        from skrub import TableVectorizer
    except ImportError:
        return None
    frame = frame.drop(columns="customer_id").assign(joined=pandas.to_datetime(frame["joined"], errors="coerce"))
    return make_pipeline(TableVectorizer(), SimpleImputer(add_indicator=True), StandardScaler()).fit_transform(frame)


@mean_of_draws
def figures(seed):
    frame = customers(5000, seed).drop(columns="kind")
    wrong = np.random.default_rng(seed).choice(5000, len(ERRORS), replace=False)
    for row, error in zip(wrong, ERRORS, strict=True):
        frame.loc[row, list(error)] = list(error.values())

    def line(oddness, flagged):
        order = np.argsort(-oddness)
        found = {f"in the first {n}": int(np.isin(wrong, order[:n]).sum()) for n in (12, 50)}
        return found | {"flagged": int(flagged.sum()), "of them wrong": int(flagged[wrong].sum())}

    detector = MOSAICOutlierDetector().fit(frame)
    lines = {"MOSAIC": line(-detector.score_samples(frame), detector.is_outlier_)}
    X = vectors(frame)
    names = ("isolation forest", "LOF", "tenth neighbour, first 1 %")
    if X is None:
        return lines | dict.fromkeys(names)
    forest = IsolationForest(n_estimators=300, random_state=seed).fit(X)
    factor = LocalOutlierFactor(20).fit(X)
    distance = NearestNeighbors(n_neighbors=10).fit(X).kneighbors()[0][:, -1]
    others = [
        line(-forest.score_samples(X), forest.predict(X) < 0),
        line(-factor.negative_outlier_factor_, factor.negative_outlier_factor_ < factor.offset_),
        line(distance, distance > np.quantile(distance, 0.99)),
    ]
    return lines | dict(zip(names, others, strict=True))


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
