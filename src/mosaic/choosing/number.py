"""How many clusters there are, where they are clear: where hardly any row is between two of them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from mosaic.arrays.blocks import FloatArray

#: A row is between two clusters if it is in this middle part of the way from centre to centre. An evenly filled line has this
#: part of its rows there, wherever it is cut; surfaces and clouds have more.
MIDDLE = 0.3
#: What a further cluster may add to the sum, over the clusters, of the share of their rows that is between.
CLEAR = 0.08
#: So many rows are counted as between for a further cluster: few rows, none of them between, prove nothing.
DOUBTFUL_ROWS = 2
#: Fewer rows show no clusters.
FEWEST_FOR_CLUSTERS = round(DOUBTFUL_ROWS / CLEAR)
#: Smallest number of rows of a cluster.
ROWS_OF_A_CLUSTER = 4


def number_of_clusters(D: FloatArray, most: int) -> tuple[int, float]:
    """argmax_k (k − 1) (CLEAR − DOUBTFUL_ROWS / n) − Σ_c b_c, at most ``most``, and mean_c b_c; 1 if no clusters are clear. D are
    squared distances between n rows, b_c is the share of the rows of the cluster c that is between it and another.
    """
    between = rows_between(D, most)
    further = np.arange(len(between))
    k = 1 + int(np.argmax(further * (CLEAR - DOUBTFUL_ROWS / len(D)) - between))
    return k, float(between[k - 1]) / k


def rows_between(D: FloatArray, most: int) -> FloatArray:
    """Σ_c |{x ∈ c : d²(x, o) − d²(x, c∖x) ≤ MIDDLE · d²(c, o)}| / |c|  for 1, 2, …, ``most`` clusters c of Ward's method, o the
    other centre that is nearest to x. The own centre is that of the others: in many columns, the mean of a few rows is near to
    each of them. All rows of clusters with fewer than ``ROWS_OF_A_CLUSTER`` count. D are squared distances.
    """
    rows = np.arange(len(D))
    tree = linkage(squareform(np.sqrt(D), checks=False), "ward")
    cluster = fcluster(tree, most, "maxclust") - 1
    members = sp.csr_array((np.ones(len(D)), (cluster, rows)))
    sizes = members.sum(axis=1)
    sums = members @ D
    sums_of_both = members @ sums.T
    found: list[float] = []
    while len(sizes) > 1:
        means = sums_of_both / np.outer(sizes, sizes)
        # The mean of d²(x, c) within each cluster; means of d² are larger by it.
        inside = np.diag(means) / 2.0
        apart = means - inside[:, None] - inside
        far = sums / sizes[:, None] - inside[:, None]
        own = far[cluster, rows]
        size = sizes[cluster]
        far[cluster, rows] = np.inf
        other = far.argmin(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Nothing is left of a cluster of one row.
            lead = far[other, rows] - own * (size / (size - 1.0)) ** 2
        is_between = ~(lead > MIDDLE * apart[cluster, other]) | (size < ROWS_OF_A_CLUSTER)
        found.append(float(np.sum(np.bincount(cluster, is_between) / sizes)))
        # How much farther rows are from their centres if two are one.
        cost = apart / (1.0 / sizes[:, None] + 1.0 / sizes)
        np.fill_diagonal(cost, np.inf)
        first, second = np.divmod(cost.argmin(), len(cost))
        sums, sizes, half = (_joined(each, first, second) for each in (sums, sizes, sums_of_both))
        sums_of_both = _joined(half.T, first, second)
        cluster[cluster == second] = first
        cluster -= cluster > second
    return np.array([0.0, *reversed(found)])


def _joined(values: FloatArray, first: int, second: int) -> FloatArray:
    values[first] += values[second]
    return np.delete(values, second, axis=0)
