"""Cold start: which images to label first, when nothing is labelled yet.

What you learn here:

- with few labels it matters which rows are labelled: a classifier learns more from representatives than from random images;
- images that nobody can label, here noise, do not use up the budget;
- ``must_include`` keeps what is labelled already, and the next choice complements it.

The images are scikit-learn's digits, 800 to choose from and 997 to test on, with 40 images of noise among the former. An
image of noise that is chosen costs a label and teaches nothing. Both choices train the same classifier.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from _shared import out_folder, write_answer
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from mosaic import MOSAIC, datasets

BUDGETS, DRAWS = (20, 50, 100), 20
NOISE = -1

folder = out_folder("cold_start", __doc__)

# 1. A pool, whose labels are not used for choosing, and a test set.
digits, labels = load_digits(return_X_y=True)
pool, X_test, y_pool, y_test = train_test_split(digits, labels, train_size=800, random_state=0, stratify=labels)
pool = np.vstack([pool, datasets.noise_images(40, pool)])
y_pool = np.append(y_pool, np.full(40, NOISE))
print(f"{len(pool)} images to choose from, {(y_pool == NOISE).sum()} of them noise; {len(y_test)} to test on.\n")


def accuracy(rows: np.ndarray) -> float:
    """Label these rows, learn from those that are digits, test."""
    taught = rows[y_pool[rows] != NOISE]
    classifier = LogisticRegression(max_iter=2000).fit(pool[taught] / 16, y_pool[taught])
    return float(classifier.score(X_test / 16, y_test))


# 2. Growing budgets: each choice keeps what is labelled already.
print("labels  representatives  random (mean of 20 draws ± deviation)  noise paid for: representatives, random")
chosen = None
for budget in BUDGETS:
    model = MOSAIC(budget).fit(pool, must_include=chosen)
    chosen = model.representative_indices_
    draws = [np.random.default_rng(seed).choice(len(pool), budget, replace=False) for seed in range(DRAWS)]
    by_chance = [accuracy(rows) for rows in draws]
    wasted = np.mean([(y_pool[rows] == NOISE).sum() for rows in draws])
    print(
        f"{budget:6d}  {accuracy(chosen):15.3f}  {np.mean(by_chance):6.3f} ± {np.std(by_chance):.3f}"
        f"  {(y_pool[chosen] == NOISE).sum():38d}, {wasted:.1f}"
    )

# 3. The reason for one of them.
print(f"\n{model.explain(int(chosen[-1]))}")
shown = ["noise" if label == NOISE else str(label) for label in y_pool]
write_answer(model, folder, "What to label first", images=pool.reshape(-1, 8, 8), columns=pd.DataFrame({"label": shown}))
