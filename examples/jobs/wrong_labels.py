"""Wrong labels found: a tenth of the labels of 1500 rows was spoiled.

Data: MNIST digits, or scikit-learn's; three draws.
Instead: cleanlab's confident learning, with out-of-sample probabilities of ten neighbours and of logistic regression.
"""

import numpy as np
from _jobs import judge_each, mean_of_draws, print_table, real_data
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from mosaic import MOSAICSampler


def cleanlab_rows(classifier, X, y):
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        return None
    likely = cross_val_predict(classifier, X, y, cv=5, method="predict_proba")
    return np.flatnonzero(find_label_issues(y, likely, n_jobs=1))


@mean_of_draws
def figures(seed):
    rng = np.random.default_rng(seed)
    mnist = real_data("mnist_t10k.npz")
    if mnist:
        X, y = np.load(mnist)["X"].reshape(-1, 784) / 255, np.load(mnist)["y"].astype(int)
    else:
        X, y = load_digits().data / 16, load_digits().target
    rows = rng.choice(len(X), 1500, replace=False)
    X, y = X[rows], y[rows]
    wrong = rng.choice(1500, 150, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 10, 150)) % 10

    sampler = MOSAICSampler(0.05)
    sampler.fit_resample(X, y)
    ways = {
        "MOSAICSampler, suspects_": sampler.suspects_.rows,
        "cleanlab, ten neighbours": cleanlab_rows(KNeighborsClassifier(10), X, y),
        "cleanlab, logistic regression": cleanlab_rows(LogisticRegression(max_iter=1000), X, y),
    }

    def judge(found):
        precision, recall = np.isin(found, wrong).mean(), np.isin(wrong, found).mean()
        return {"precision": precision, "recall": recall, "F1": 2 * precision * recall / (precision + recall)}

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
