"""Rare but honest: small groups among the outliers whose members are one another's neighbours.

A group of at least g outliers may be a rare kind rather than a fault, however sparse it is. Two outliers are linked if each is
among the five nearest rows of the other, and those that links connect are a group. Ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mosaic._arrays import BoolArray, FloatArray, row_blocks
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel

#: Nearest rows among which members of a group find one another.
NEAREST = 5
#: Outliers among which groups are looked for, at most.
MOST_OUTLIERS = 5000


@dataclass(frozen=True)
class Groups:
    """Outliers that are kept because they are a group.

    Attributes
    ----------
    members : mask over all distinct points
    kernel : between the members; of all points, if there are none
    reach : for each member the distance, as the kernel orders points, within which its links are and no other outlier is
    """

    members: BoolArray
    kernel: Kernel
    reach: FloatArray

    def near(self, Y: Any) -> BoolArray:
        """New points that are as close to a member as those that it is linked to."""
        if not self.members.any():
            return np.zeros(Y.shape[0], dtype=bool)
        near = np.zeros(Y.shape[0], dtype=bool)
        for part in row_blocks(Y.shape[0], self.kernel.n):
            near[part] = (self.kernel.distances_at(Y[part]) <= self.reach * (1.0 + 1e-9)).any(axis=1)
        return near


def find_groups(kernel: Kernel, low: BoolArray, weights: FloatArray, smallest: float) -> Groups:
    """Groups of at least ``smallest`` points among those that are low.

    Parameters
    ----------
    kernel : similarity between distinct points
    low : which of them are outliers
    weights : how often each of them counts
    smallest : number of points, copies counted, that make a group

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> X = np.concatenate([np.arange(50.0), [200.0, 201.0, 202.0], [400.0]])[:, None]
    >>> kernel = make_kernel(X, "rbf", gamma=1e-4)
    >>> np.flatnonzero(find_groups(kernel, X.ravel() > 100, np.ones(54), 3).members).tolist()
    [50, 51, 52]
    """
    sizes, reach = group_sizes(kernel, low, weights)
    members = sizes >= smallest
    if not members.any():
        return Groups(members, kernel, reach[members])
    inside, outside = np.flatnonzero(members), np.flatnonzero(low & ~members)
    for part in row_blocks(len(inside), len(outside)):
        apart = kernel.distances(inside[part], outside).min(axis=1, initial=np.inf)
        reach[inside[part]] = np.minimum(reach[inside[part]], (1.0 - 1e-6) * apart)
    return Groups(members, kernel.take(inside), reach[members])


def group_sizes(kernel: Kernel, low: BoolArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each point the size of its group among the low ones, 0 for others, and how far away its farthest link is."""
    outliers = np.flatnonzero(low)
    if len(outliers) > MOST_OUTLIERS:
        raise InvalidInputError(
            f"min_group looks for groups among {MOST_OUTLIERS:,} outliers at most, and there are {len(outliers):,}. "
            "Lower contamination, or leave min_group out."
        )
    sizes, reach = np.zeros(len(low)), np.zeros(len(low))
    if not len(outliers) or kernel.n < 2:
        return sizes, reach
    most = min(NEAREST, kernel.n - 1)
    place = np.full(kernel.n, -1, np.intp)
    place[outliers] = np.arange(len(outliers))
    named = []
    for part in row_blocks(len(outliers), kernel.n):
        D = kernel.distances(outliers[part], np.arange(kernel.n))
        rows = np.arange(len(D))[:, None]
        D[rows.ravel(), outliers[part]] = np.inf
        nearest = np.argpartition(D, most - 1, axis=1)[:, :most]
        among = low[nearest]
        named.append(
            (np.broadcast_to(part.start + rows, nearest.shape)[among], place[nearest[among]], D[rows, nearest][among])
        )
    a, b, apart = (np.concatenate(parts) for parts in zip(*named, strict=True))
    mutual = np.isin(a * len(outliers) + b, b * len(outliers) + a)
    a, b = a[mutual], b[mutual]
    links = sp.coo_array((np.ones(len(a)), (a, b)), shape=(len(outliers), len(outliers)))
    group = connected_components(links, directed=False)[1]
    sizes[outliers] = np.bincount(group, weights=weights[outliers])[group]
    np.maximum.at(reach, outliers[a], apart[mutual])
    return sizes, reach
