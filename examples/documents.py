"""Documents: which texts to read if there is time for fifteen.

What you learn here:

- texts need numbers first; word frequencies (TF-IDF) reduced to a few directions (SVD) will do, a sentence embedding is better;
- copies and near copies are not chosen twice;
- how many texts each chosen one stands for, and which of them stands for a new text;
- what the choice is worth: nearest-neighbour accuracy when only the chosen texts are labelled, compared with random ones.

The texts are postings to two newsgroups about baseball and hockey where ``text_basehock.npz`` is in the folder of real data. It
has word counts but no words. Otherwise they are the docstrings of scikit-learn's classes, about two hundred texts with the name
of their module as subject, which come with every installation.
"""

from __future__ import annotations

import inspect
import re

import numpy as np
import pandas as pd
from _shared import out_folder, real_data, stands_for, write_answer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils import all_estimators

from mosaic import MOSAIC

K, COPIES, DRAWS = 15, 20, 50
NEW = "Groups points into clusters around centroids and assigns each point to the nearest cluster."

folder = out_folder("documents", __doc__)
rng = np.random.default_rng(0)

# 1. Word counts, a name and a subject for each text.
postings, words = real_data("text_basehock.npz"), None
if postings is not None:
    print("Data: postings to two newsgroups.")
    stored = np.load(postings)
    counts = stored["X"].astype(float)
    subjects = np.array(["baseball", "hockey"])[stored["y"] - 1]
    names = [f"posting {number}" for number in range(len(counts))]
else:
    print("Data: what scikit-learn's classes say about themselves, in place of postings.")
    classes = [thing for _, thing in all_estimators()]
    texts = [re.sub(r"\s+", " ", inspect.getdoc(thing) or "") for thing in classes]
    words = CountVectorizer(stop_words="english", min_df=3, max_df=0.5, token_pattern=r"[a-z]{3,}").fit(texts)
    counts = words.transform(texts).toarray().astype(float)
    subjects = np.array([thing.__module__.split(".")[1] for thing in classes])
    names = [thing.__name__ for thing in classes]

# 2. Add copies of some texts, half of them with a few more words.
again = rng.choice(len(counts), COPIES, replace=False)
copies = counts[again]
copies[COPIES // 2 :] += rng.random(copies[COPIES // 2 :].shape) < 3 / copies.shape[1]
original = np.append(np.arange(len(counts)), again)
counts, subjects = np.vstack([counts, copies]), np.append(subjects, subjects[again])
names += [f"{names[i]} (again)" for i in again]
print(f"{len(names)} texts, {COPIES} of them copies or nearly so; {counts.shape[1]} words; {len(set(subjects))} subjects.\n")

# 3. Numbers that compare the subject of texts and not their length.
to_points = make_pipeline(TfidfTransformer(sublinear_tf=True), TruncatedSVD(50, random_state=0), Normalizer())
X = to_points.fit_transform(counts)

# 4. The texts to read.
model = MOSAIC(K).fit(X)
picks = model.representative_indices_
for row, size in zip(picks, stands_for(model), strict=True):
    print(f"  {names[row]:32s} {subjects[row]:20s} stands for {size}")
print(f"No text twice: {len(set(original[picks]))} different ones. Subjects: {len(set(subjects[picks]))}.")
print(model.certificate_)

# 5. What the choice is worth: only the chosen texts are labelled; every other text gets the subject of the nearest.
rest = np.setdiff1d(np.arange(len(X)), picks)


def accuracy(rows: np.ndarray) -> float:
    """Share of texts that have the subject of the nearest of these."""
    return float(KNeighborsClassifier(1).fit(X[rows], subjects[rows]).score(X[rest], subjects[rest]))


draws = [accuracy(np.random.default_rng(seed).choice(rest, K, replace=False)) for seed in range(DRAWS)]
print(f"\nAccuracy with {K} labels: chosen {accuracy(picks):.3f}, random {np.mean(draws):.3f} ± {np.std(draws):.3f}.")

# 6. Which of the chosen texts stands for a new one?
if words is not None:
    place = model.predict(to_points.transform(words.transform([NEW]).toarray().astype(float)))[0]
    print(f"For “{NEW}” speaks: {names[picks[place]] if place >= 0 else 'nobody'}.")

write_answer(model, folder, "Texts to read", names=names, columns=pd.DataFrame({"subject": subjects}))
