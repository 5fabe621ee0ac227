"""Long texts in a CSV: the 30 to read first, judged by the accuracy of the nearest one in guessing the subject of the others.

Data: what the functions of scipy say about themselves, about 1200 texts; the subject is their module, which is not in the file.
Instead: k-medoids on TF-IDF (cosine) or on its 100 leading directions (LSA). Nearest is by the cosine of TF-IDF for all.
"""

import importlib
import inspect
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas
from _jobs import judge_each, k_medoids, mean_of_draws, print_table
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neighbors import KNeighborsClassifier

from mosaic import MOSAIC

K = 30
MODULES = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special", "stats"]


def texts_and_subjects():
    found = {}
    for subject in MODULES:
        module = importlib.import_module(f"scipy.{subject}")
        for name in module.__all__:
            text = re.sub(r"\s+", " ", inspect.getdoc(getattr(module, name)) or "")
            if len(text.split()) >= 40:
                found.setdefault(text, subject)
    return np.array(list(found)), np.array(list(found.values()))


@mean_of_draws
def figures(seed):
    texts, subjects = texts_and_subjects()
    order = np.random.default_rng(seed).permutation(len(texts))
    texts, subjects = texts[order], subjects[order]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.csv"
        pandas.DataFrame({"text": texts}).to_csv(path, index=False)
        chosen = MOSAIC(K).fit(path).representative_indices_
    X = TfidfVectorizer(stop_words="english", sublinear_tf=True, min_df=2).fit_transform(texts)
    ways = {
        "MOSAIC": chosen,
        "k-medoids, TF-IDF": k_medoids(X, K, seed, "cosine"),
        "k-medoids, LSA": k_medoids(TruncatedSVD(100, random_state=seed).fit_transform(X), K, seed, "cosine"),
        "random": np.random.default_rng(seed).choice(len(texts), K, replace=False),
    }

    def judge(picks):
        nearest = KNeighborsClassifier(1, metric="cosine").fit(X[picks], subjects[picks])
        return {"accuracy": nearest.score(X, subjects), "subjects of 11": len(set(subjects[picks]))}

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
