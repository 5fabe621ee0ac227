"""What makes two rows alike: how columns and rows are scaled, the kernel, and its bandwidth. Decided once for a fit.

One similarity serves everything: who is an outlier, who is chosen, what is proven, and what is reported. It does not depend on
how many representatives are wanted, so that numbers of different fits can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic._arrays import FloatArray, Prepare, row_norms_squared, subsample
from mosaic.choosing.points import Points
from mosaic.choosing.scaling import column_scale
from mosaic.choosing.settings import Settings
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import RBF, EffectiveCount, Kernel, Laplacian, make_kernel, resolve_gamma

#: Bandwidth: a point in a dense place, denser than three quarters of all are, resembles this share of all points.
RESEMBLED_SHARE, DENSE_QUANTILE = 0.2, 0.75
#: Points that it is found with.
BANDWIDTH_SAMPLE = 2048
#: Rows of at least so many columns are compared by their direction if they are word counts (non-negative, at least this share
#: zeros) or embeddings: three quarters of the columns have at least a quarter of their values on either side of zero, and no row
#: is longer than three times the median, or length would tell something.
MANY_COLUMNS, ZEROS, MIXED_COLUMNS, EITHER_SIDE, LONGEST = 50, 0.95, 0.75, 0.25, 3.0
#: Rows that are looked at for that.
LOOKED_AT = 2000
#: Columns that are named with what they were divided by.
MOST_NAMED = 3
STATIONARY: dict[str, type[RBF] | type[Laplacian]] = {"rbf": RBF, "laplacian": Laplacian}


@dataclass(frozen=True)
class Geometry:
    """How rows become points of a kernel.

    Attributes
    ----------
    prepare : what is done to rows before they are compared
    kernel : the similarity, over the distinct points
    decisions : what was decided, in sentences
    """

    prepare: Prepare
    kernel: Kernel
    decisions: tuple[str, ...]

    @property
    def gamma(self) -> float | None:
        """The bandwidth, where the kernel has one."""
        return getattr(self.kernel, "gamma", None)


def preparation_of(X: Any, weights: FloatArray | None, settings: Settings) -> Prepare:
    """What is done to rows before they are compared."""
    if settings.scale is True and settings.kernel == "precomputed":
        raise InvalidInputError("scale=True divides columns of features; with kernel='precomputed' there are none.")
    scale = column_scale(X, weights, settings.scale, ours=settings.similarity_is_ours)
    ours = settings.similarity_is_ours and scale is None and settings.scale is not False
    return Prepare(scale, ours and compares_directions(X))


def compares_directions(X: Any) -> bool:
    """Whether rows are word counts or embeddings, whose length says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> compares_directions(rng.normal(size=(100, 64))), compares_directions(rng.normal(size=(100, 8)))
    (True, False)
    >>> compares_directions((rng.random((100, 500)) < 0.02) * 1.0), compares_directions(rng.random((100, 500)))
    (True, False)
    """
    n, d = X.shape
    if d < MANY_COLUMNS:
        return False
    some = X[subsample(n, LOOKED_AT, 0)]
    if sp.issparse(some):
        return bool(some.nnz <= (1.0 - ZEROS) * some.shape[0] * d and (some.data >= 0).all())
    if (some >= 0).all():
        return bool((some == 0).mean() >= ZEROS)
    mixed = np.minimum((some < 0).mean(axis=0), (some > 0).mean(axis=0)) >= EITHER_SIDE
    lengths = np.sqrt(row_norms_squared(X))
    return bool(mixed.mean() >= MIXED_COLUMNS and lengths.max() <= LONGEST * np.median(lengths))


def geometry_of(
    X: Any,
    points: Points,
    settings: Settings,
    prepare: Prepare,
    names: Sequence[str] | None,
    seed: int,
) -> Geometry:
    """The kernel over the distinct points of prepared rows X, and what was decided on the way."""
    kernel = _kernel(X, points, settings, seed)
    decisions = (_on_columns(prepare, settings, names), _on_bandwidth(kernel, settings, points.n))
    return Geometry(prepare, kernel, decisions)


def _kernel(X: Any, points: Points, settings: Settings, seed: int) -> Kernel:
    name, gamma = settings.kernel, settings.gamma
    if isinstance(name, str) and name == "precomputed":
        kernel = make_kernel(X, "precomputed")
        same = points.n == kernel.n and bool((points.first == np.arange(kernel.n)).all())
        return kernel if same else kernel.take(points.first)
    rows = X[points.first]
    some = points.sample(np.arange(points.n), BANDWIDTH_SAMPLE)
    if isinstance(gamma, str) and gamma == "auto":
        gamma = "scale"
        if isinstance(name, str) and name in STATIONARY and points.n > 1:
            gamma = (
                paper_gamma(rows) if settings.mode == "paper" else bandwidth(STATIONARY[name](X[points.first[some]]))
            )
    return make_kernel(
        rows,
        name,
        gamma=gamma,
        degree=settings.degree,
        coef0=settings.coef0,
        n_neighbors=settings.n_neighbors,
        time=settings.diffusion_time,
        random_state=seed,
    )


def bandwidth(kernel: RBF | Laplacian) -> float:
    """γ at which a point that lies denser than three quarters of all resembles a fifth of all points.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> counts = (RBF(X, bandwidth(RBF(X))).columns(np.arange(400)) ** 2).sum(axis=0)
    >>> round(float(np.quantile(counts, 0.75)))
    80
    """
    wanted = max(min(RESEMBLED_SHARE * kernel.n, 0.5 * kernel.n), 1.5)
    if wanted >= kernel.n:
        return resolve_gamma(kernel, "median")
    try:
        return resolve_gamma(kernel, EffectiveCount(wanted, DENSE_QUANTILE))
    except InvalidInputError:  # a quarter of the points are equal but for rounding
        return resolve_gamma(kernel, "median")


def paper_gamma(X: Any) -> float:
    """1/σ² with σ² = 10·s², s the mean over features of the variance: the widest of three settings in later work."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    s = float(np.asarray(dense, np.float64).var(axis=0).mean())
    return 0.1 / s**2 if s > 0 else 1.0


def _on_columns(prepare: Prepare, settings: Settings, names: Sequence[str] | None) -> str:
    scale = prepare.scale
    if prepare.directions:
        return "Rows are compared by their direction, as word counts and embeddings are: each is divided by its length."
    if scale is None:
        return "Columns are taken as they are."
    largest = np.argsort(-scale, kind="stable")[:MOST_NAMED]
    shown = ", ".join(f"{names[j] if names is not None else f'column {j}'} by {scale[j]:.3g}" for j in largest)
    asked = not isinstance(settings.scale, str)
    why = "as was asked for" if asked else "since otherwise few of them would be all that distances see"
    more = " …" if len(scale) > MOST_NAMED else ""
    return f"Columns are divided by their spread, {why}: {shown}{more}."


def _on_bandwidth(kernel: Kernel, settings: Settings, n: int) -> str:
    if not hasattr(kernel, "gamma"):
        return f"Similarity: {settings.kernel if isinstance(settings.kernel, str) else 'as given'}, which has no bandwidth."
    ours = isinstance(settings.gamma, str) and settings.gamma == "auto"
    if ours and settings.mode == "auto" and isinstance(kernel, RBF | Laplacian):
        share = f"{RESEMBLED_SHARE * n:,.0f} of {n:,} points, a fifth of all"
        return f"Bandwidth {kernel.gamma:.3g}: so that a point in a dense place resembles {share}."
    return f"Bandwidth {kernel.gamma:.3g}, {'by the rule of the mode' if ours else 'as it was set'}."
