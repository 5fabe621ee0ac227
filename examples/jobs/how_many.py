"""How many? The number that is taken without being told, against the true number of clusters.

Data: 4 and 8 clusters of unequal sizes in 5 dimensions, 300 points, far apart, close, and with 6 gross outliers; three draws.
Instead: DynMSC of kmedoids, and the best silhouette of k-means, both for 2 to 15 clusters. The error is the mean of |k - true k|.
"""

import numpy as np
from _jobs import judge_each, mean_of_draws, print_table
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances, silhouette_score

from mosaic import MOSAIC

try:
    import kmedoids
except ImportError:
    kmedoids = None


def best_silhouette(X, seed):
    distances = pairwise_distances(X)

    def score(k):
        return silhouette_score(distances, KMeans(k, n_init=3, random_state=seed).fit_predict(X), metric="precomputed")

    return max(range(2, 16), key=score)


def clusters(true, apart, seed):
    """Points around centres that are so many deviations apart, or a little more."""
    rng = np.random.default_rng(seed)
    centres = [np.zeros(5)]
    while len(centres) < true:
        centre = rng.normal(0, apart, 5)
        if min(np.linalg.norm(centre - other) for other in centres) > apart:
            centres.append(centre)
    share = rng.uniform(0.5, 2, true)
    return np.array(centres)[rng.choice(true, 300, p=share / share.sum())] + rng.normal(size=(300, 5))


@mean_of_draws
def figures(seed):
    far = np.random.default_rng(seed).normal(size=(6, 5))
    far *= 100 / np.linalg.norm(far, axis=1)[:, None]
    eight = clusters(8, 7, seed)
    sets = {"4 clusters": clusters(4, 7, seed), "8 clusters": eight, "8, close": clusters(8, 5, seed)}
    sets["8, outliers"] = np.vstack([eight, far])
    ways = {
        "MOSAIC": lambda X: MOSAIC("auto").fit(X).n_representatives_,
        "DynMSC": kmedoids and (lambda X: kmedoids.dynmsc(pairwise_distances(X), 15, 2, random_state=seed).bestk),
        "k-means, silhouette": lambda X: best_silhouette(X, seed),
    }

    def judge(choose):
        found = {what: choose(X) for what, X in sets.items()}
        return found | {"error": np.mean([abs(k - int(what[0])) for what, k in found.items()])}

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
