"""Rare but honest: small groups among the outliers that are as close together as points that belong.

A group of at least g outliers may be a rare kind rather than a fault. "Close together" means what it means for the points
that belong: as similar as nine in ten of them are to their fourth neighbour. Outliers that are so similar are linked, and those
that links connect are a group. The more points make a group, the fewer are protected. Ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mosaic._arrays import BoolArray, FloatArray, IntArray, row_blocks, subsample
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel
from mosaic.selection import similarities

#: The part of the points that belong which may be lonelier than the members of a group.
LONELIER = 0.1
#: Points, itself included, that a point which belongs has close to it.
CLOSE = 5
#: Points that belong which are asked how close others are, and outliers among which groups are looked for, at most.
ASKED, MOST_OUTLIERS = 1000, 5000


@dataclass(frozen=True)
class Groups:
    """Outliers that are protected because they are a group.

    Attributes
    ----------
    members : mask over all distinct points
    kernel : between the members; of all points, if there are none
    closeness : the similarity that links members
    """

    members: BoolArray
    kernel: Kernel
    closeness: float

    def near(self, Y: Any) -> BoolArray:
        """New points that are as close to a member as members are to one another."""
        if not self.members.any():
            return np.zeros(Y.shape[0], dtype=bool)
        own, theirs = self.kernel.diagonal_at(Y), self.kernel.diagonal()
        near = np.zeros(Y.shape[0], dtype=bool)
        for part in row_blocks(Y.shape[0], len(theirs)):
            lengths = 0.5 * (own[part, None] + theirs)
            near[part] = (self.kernel.cross(Y[part]) >= self.closeness * lengths).any(axis=1)
        return near


def find_groups(
    kernel: Kernel, low: BoolArray, weights: FloatArray, smallest: float, *, random_state: int = 0
) -> Groups:
    """Groups of at least ``smallest`` points among those that are low.

    Parameters
    ----------
    kernel : similarity between distinct points
    low : which of them are outliers
    weights : how often each of them counts
    smallest : number of points, copies counted, that make a group
    random_state : seed of the sample that tells what is close

    Examples
    --------
    >>> import numpy as np
    >>> from mosaic.kernels import make_kernel
    >>> X = np.concatenate([np.arange(50.0), [200.0, 201.0, 202.0], [400.0]])[:, None]
    >>> kernel = make_kernel(X, "rbf", gamma=0.1)
    >>> np.flatnonzero(find_groups(kernel, X.ravel() > 100, np.ones(54), 3).members).tolist()
    [50, 51, 52]
    """
    sizes, closeness = group_sizes(kernel, low, weights, random_state=random_state)
    members = sizes >= smallest
    return Groups(members, kernel.take(np.flatnonzero(members)) if members.any() else kernel, closeness)


def group_sizes(
    kernel: Kernel, low: BoolArray, weights: FloatArray, *, random_state: int = 0
) -> tuple[FloatArray, float]:
    """For each point the size of its group among the low ones, 0 for others, and the similarity that links members."""
    outliers, others = np.flatnonzero(low), np.flatnonzero(~low)
    if len(outliers) > MOST_OUTLIERS:
        raise InvalidInputError(
            f"min_group looks for groups among {MOST_OUTLIERS:,} outliers at most, and there are {len(outliers):,}. "
            "Lower contamination, or leave min_group out."
        )
    sizes, closeness = np.zeros(len(low)), 0.0
    if not (len(outliers) and len(others)):
        return sizes, closeness
    asked = others[subsample(len(others), ASKED, random_state)]
    closeness = float(np.quantile(_reach(kernel, asked, others, weights[others]), LONELIER))
    if closeness > 0:
        blocks = [
            sp.csr_array(similarities(kernel, outliers[part], outliers) >= closeness)
            for part in row_blocks(len(outliers), len(outliers))
        ]
        group = connected_components(sp.vstack(blocks), directed=False)[1]
        sizes[outliers] = np.bincount(group, weights=weights[outliers])[group]
    return sizes, closeness


def _reach(kernel: Kernel, asked: IntArray, others: IntArray, weights: FloatArray) -> FloatArray:
    """For each point that is asked: the similarity within which it has enough points, copies counted.

    Light points are looked at four times as far; who has too few even so is content with these.
    """
    reach = np.zeros(len(asked))
    most = min(4 * CLOSE, len(others))
    for part in row_blocks(len(asked), len(others)):
        S = similarities(kernel, asked[part], others)
        near = np.argpartition(-S, most - 1, axis=1)[:, :most]
        order = np.take_along_axis(
            near, np.argsort(-np.take_along_axis(S, near, axis=1), axis=1, kind="stable"), axis=1
        )
        enough = np.cumsum(weights[order], axis=1) >= CLOSE
        last = np.where(enough.any(axis=1), enough.argmax(axis=1), most - 1)
        reach[part] = S[np.arange(len(S)), order[np.arange(len(S)), last]]
    return reach
