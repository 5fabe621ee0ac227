"""New rows: which of 500 do not belong, 20 of which were spoiled, judged by a model of 2000 earlier rows?

Data: customers, made on the spot; three draws. The reason of MOSAIC is right if it names the column that was spoiled first.
Instead: LocalOutlierFactor(novelty=True) after skrub's TableVectorizer and scaling; and isolation forest.
"""

import numpy as np
from _jobs import customers, judge_each, mean_of_draws, print_table
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mosaic import MOSAIC

ERRORS = [("age", 999), ("age", -1), ("income", 0), ("orders", 900), ("city", "Atlantis"), ("segment", "bsaic")]


def skrub_and(detector, old, new):
    try:
        from skrub import TableVectorizer
    except ImportError:
        return None
    model = make_pipeline(TableVectorizer(), StandardScaler(), detector).fit(old.drop(columns="customer_id"))
    return model.predict(new.drop(columns="customer_id")) < 0


@mean_of_draws
def figures(seed):
    old, new = customers(2000, 2 * seed).drop(columns="kind"), customers(500, 2 * seed + 1).drop(columns="kind")
    wrong = np.random.default_rng(seed).choice(500, 20, replace=False)
    spoiled = [ERRORS[i % len(ERRORS)] for i in range(20)]
    for row, (column, value) in zip(wrong, spoiled, strict=True):
        new.loc[row, column] = value
    model = MOSAIC(20).fit(old)
    reasons = model.explain_new(new).to_frame()["reason"]
    named = [str(reasons.iloc[row]).startswith(column) for row, (column, _) in zip(wrong, spoiled, strict=True)]
    ways = {
        "MOSAIC": model.predict(new) < 0,
        "LOF, novelty": skrub_and(LocalOutlierFactor(20, novelty=True), old, new),
        "isolation forest": skrub_and(IsolationForest(n_estimators=300, random_state=seed), old, new),
    }

    def judge(flagged):
        right = flagged[wrong].sum()
        return {"found of 20": right, "false alarms": flagged.sum() - right, "right reason": np.nan}

    lines = judge_each(ways, judge)
    lines["MOSAIC"]["right reason"] = sum(named)
    return lines


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
