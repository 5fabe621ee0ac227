"""The geometry: how columns and rows are scaled, the kernel and its bandwidth, decided once for a fit; what is usual in columns.

A column in metres next to one in kilometres dominates all distances; by default, columns are divided by their spread if three
conditions hold (``docs/decisions/0017`` has the measurements):

- (Σ s_j²)² / Σ s_j⁴ < 3: all columns together vary like fewer than three,
- the largest spread is at least five times the median one,
- the columns are not principal components, whose spread carries meaning: uncorrelated, and in the order of their spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mosaic.arrays.blocks import (
    FloatArray,
    IntArray,
    Prepare,
    in_blocks,
    in_double,
    row_blocks,
    row_lengths,
    subsample,
)
from mosaic.arrays.xp import (
    Matrix,
    as_double,
    host_rows,
    is_on_device,
    namespace,
    on_host,
    rows_of,
    to_device_of,
)
from mosaic.choosing.points import Points
from mosaic.choosing.settings import Settings, is_auto
from mosaic.door import check_size
from mosaic.exceptions import InvalidInputError, warn
from mosaic.kernels import (
    POINT_KERNELS,
    STATIONARY_KERNELS,
    Distances,
    EffectiveCount,
    Kernel,
    StationaryKernel,
    make_kernel,
    resolve_gamma,
    stationary,
)
from mosaic.kernels.points import Cosine, lengths_of_directions
from mosaic.text import figure

if TYPE_CHECKING:
    from mosaic.choosing.selection import Selection

#: Bandwidth: a point in a denser place than three quarters of all points (the second number) resembles a fifth of them.
RESEMBLED_SHARE = 0.2
DENSE_QUANTILE = 0.75
#: Largest number of points that the bandwidth is computed from.
BANDWIDTH_SAMPLE = 2048
#: Columns are divided if all together vary like fewer columns than the first number, and the largest spread is at least the
#: second number times the median one; they are principal components if the root mean square of their correlations is at most the
#: third number times its value by chance, and the spread of each at most the fourth times that of the column before.
FEW_COLUMNS = 3.0
LARGEST_TO_MEDIAN = 5.0
CHANCE_CORRELATION = 2.0
NEXT_SPREAD = 1.2
#: A spread by the middle half is at least this part of the spread by the middle nine tenths.
LEAST_PART = 0.1
#: Rows with at least this many columns are compared by their direction if they are word counts (non-negative, at least this share
#: zeros) or embeddings: three quarters of the columns have at least a quarter of their values on either side of zero, and no row
#: is longer than three times the median; otherwise length carries information.
MANY_COLUMNS = 50
ZERO_SHARE = 0.95
MIXED_COLUMNS = 0.75
EITHER_SIDE = 0.25
LONGEST_TO_MEDIAN = 3.0


@dataclass(frozen=True)
class Geometry:
    """How rows become points of a kernel: their preparation, the similarity over the distinct points, and decisions."""

    prepare: Prepare
    kernel: Kernel
    decisions: tuple[str, ...]
    mixed: bool = False  # whether rows are those of a mixed table

    @property
    def gamma(self) -> float | None:
        return getattr(self.kernel, "gamma", None)


def preparation_of(X: Matrix, weights: FloatArray | None, settings: Settings) -> Prepare:
    if settings.scale is True and settings.takes_as_given:
        fault = f"divides columns of features, and with `kernel={settings.kernel!r}` there are none"
        raise InvalidInputError(fault, "Leave it at 'auto'.", parameter="scale", value=True)
    check_size(X)
    ours = settings.similarity_is_ours
    scale = column_scale(X, weights, settings.scale, ours=ours)
    looks_at_lengths = ours and scale is None and settings.scale is not False
    directions = looks_at_lengths and compares_directions(X)
    as_they_are = looks_at_lengths and not directions
    if as_they_are and sp.issparse(X) and unequal(_sparse_deviations(X, weights)):
        fault = "A few columns dominate all distances, and those of a sparse matrix are not divided by their spread."
        remedy = "Divide them first, as with MaxAbsScaler, or set `scale=False` if their units are the same."
        warn(f"{fault} {remedy}")
    return Prepare(scale, directions)


def column_scale(
    X: Matrix, weights: FloatArray | None, scale: Any, *, ours: bool
) -> FloatArray | None:
    """The divisors of the columns; None to leave them as they are, the default if the kernel is not ``ours``."""
    if isinstance(scale, bool | np.bool_):
        if not scale:
            return None
        if sp.issparse(X):
            fault = "divides columns by interquartile ranges, which sparse columns do not have"
            remedy = "Divide them first, as with MaxAbsScaler."
            raise InvalidInputError(fault, remedy, parameter="scale", value=True)
        return _spreads(X, weights, _deviations(X, weights))
    if not is_auto(scale):
        raise InvalidInputError("must be 'auto', True or False", parameter="scale", value=scale)
    if not ours or sp.issparse(X) or X.shape[1] < 2:
        return None
    deviations = _deviations(X, weights)
    if not unequal(deviations):
        return None
    spreads = _spreads(X, weights, deviations)
    is_dominated = unequal(spreads) and not _are_components(X, weights, deviations)
    return spreads if is_dominated else None


def unequal(spreads: FloatArray) -> bool:
    """Whether a few columns would dominate all distances."""
    s = np.sort(spreads[spreads > 0]) / (spreads.max() or 1.0)
    if len(s) < 2:
        return False
    alike = float((s**2).sum()) ** 2 / float((s**4).sum())
    return bool(alike < FEW_COLUMNS and s[(len(s) - 1) // 2] * LARGEST_TO_MEDIAN <= 1.0)


def _deviations(X: Matrix, weights: FloatArray | None) -> FloatArray:
    """Standard deviations (Σ_b s_b (v_b + (m_b − m)²))^½ of the columns, from shares s_b, means m_b and variances v_b of blocks
    of rows, m = Σ_b s_b m_b; 0 where they are rounding errors.
    """
    n = X.shape[0]
    xp = namespace(X)
    share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()

    def of_block(part: slice) -> NDArray[Any]:
        total = share[part].sum()
        Y = as_double(rows_of(X, part))
        w = to_device_of(X, share[part] / total)
        mean = w @ Y
        variance = w @ (Y - mean) ** 2
        largest = xp.max(xp.abs(Y), axis=0)
        return np.vstack([on_host(xp.stack([mean, variance, largest])), np.full(X.shape[1], total)])

    mean, variance, largest, total = np.stack(in_blocks(of_block, n, X.shape[1], on=X), axis=1)
    apart = mean - (total * mean).sum(axis=0)
    deviations = np.sqrt((total * (variance + apart**2)).sum(axis=0))
    return np.where(deviations > 1e-12 * largest.max(axis=0), deviations, 0.0)


def _sparse_deviations(X: Matrix, weights: FloatArray | None) -> FloatArray:
    """Standard deviations of the columns of a CSR matrix, (Σ ω_i x_ij² − (Σ ω_i x_ij)²)^½ with Σ ω_i = 1."""
    share = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights / weights.sum()
    Y = X.astype(np.float64)
    return np.asarray(np.sqrt(np.maximum(share @ Y.multiply(Y) - (share @ Y) ** 2, 0.0)))


def _spreads(X: Matrix, weights: FloatArray | None, deviations: FloatArray) -> FloatArray:
    """Interquartile ranges, which outliers do not widen, as deviations; where most values are equal the deviation, else 1. They
    are rounded, so that the order of the rows does not change the last digit and thereby the order of the points.
    """
    shares = [0.05, 0.25, 0.75, 0.95]
    if is_on_device(X) and weights is None:
        places = np.ceil(np.array(shares) * X.shape[0]).astype(int) - 1
        q = host_rows(namespace(X).sort(X, axis=0), places.clip(0))
    else:
        q = np.quantile(on_host(X), shares, axis=0, weights=weights, method="inverted_cdf").astype(
            np.float64
        )
    half = (q[2] - q[1]) / 1.349
    most = (q[3] - q[0]) / 3.290  # so wide are these of a normal distribution, in deviations
    spreads = np.select(
        [half > 0, most > 0], [np.maximum(half, LEAST_PART * most), most], deviations
    )
    mantissa, exponent = np.frexp(np.where((spreads > 0) & (deviations > 0), spreads, 1.0))
    return np.ldexp(np.round(mantissa, 8), exponent)


def _are_components(X: Matrix, weights: FloatArray | None, deviations: FloatArray) -> bool:
    """Whether columns look like principal components of this data, or of a larger or smaller set of such data."""
    varying = np.flatnonzero(deviations)
    if (deviations[varying[1:]] > NEXT_SPREAD * deviations[varying[:-1]]).any():
        return False
    columns = varying[subsample(len(varying), 300, 0)]
    rows = subsample(X.shape[0], 20_000, 0)
    Y = host_rows(X, rows)[:, columns] / deviations[columns]
    C = np.cov(Y, rowvar=False, aweights=None if weights is None else weights[rows])
    scale = np.sqrt(np.diag(C))
    others = (C / np.outer(scale, scale))[~np.eye(len(C), dtype=bool)]
    return bool(np.sqrt(np.mean(others**2)) < CHANCE_CORRELATION / np.sqrt(len(rows)))


def compares_directions(X: Matrix) -> bool:
    """Whether rows are word counts or embeddings, whose length carries no information."""
    n, d = X.shape
    if d < MANY_COLUMNS:
        return False
    some: Any = on_host(rows_of(X, subsample(n, 2000, 0)))
    if sp.issparse(some):
        return bool(some.nnz <= (1.0 - ZERO_SHARE) * some.shape[0] * d and (some.data >= 0).all())
    if (some >= 0).all():
        return bool((some == 0).mean() >= ZERO_SHARE)
    mixed = np.minimum((some < 0).mean(axis=0), (some > 0).mean(axis=0)) >= EITHER_SIDE
    lengths = row_lengths(X)
    return bool(
        mixed.mean() >= MIXED_COLUMNS and lengths.max() <= LONGEST_TO_MEDIAN * np.median(lengths)
    )


def geometry_of(
    X: Matrix,
    points: Points,
    settings: Settings,
    prepare: Prepare,
    names: Sequence[str] | None,
    seed: int,
) -> Geometry:
    kernel = _kernel(X, points, settings, prepare, seed)
    decisions = (
        _about_columns(X, settings, prepare, names),
        _about_bandwidth(kernel, settings, points.n),
    )
    return Geometry(prepare, kernel, decisions)


def _about_columns(
    X: Matrix, settings: Settings, prepare: Prepare, names: Sequence[str] | None
) -> str:
    scale = prepare.scale
    if scale is not None:
        why = "since otherwise a few of them would dominate all distances"
        if not is_auto(settings.scale):
            why = "because of scale=True"
        largest = np.argsort(-scale, kind="stable")[:3]
        shown = [
            f"{f'column {j}' if names is None else names[j]} by {scale[j]:.3g}" for j in largest
        ]
        more = " …" if len(scale) > 3 else ""
        return f"Columns are divided by their spread, {why}: {', '.join(shown)}{more}."
    if prepare.directions:
        return "Rows are compared by their direction, as word counts and embeddings are: each is divided by its length."
    if sp.issparse(X) and is_auto(settings.scale):
        return "Columns are taken as they are: those of a sparse matrix are not divided by their spread."
    return "Columns are taken as they are."


def _about_bandwidth(kernel: Kernel, settings: Settings, n: int) -> str:
    gamma = getattr(kernel, "gamma", None)
    if gamma is None:
        name = settings.kernel if isinstance(settings.kernel, str) else "as given"
        return f"Similarity: {name}, which has no bandwidth."
    if not is_auto(settings.gamma):
        why = ", as it was set"
    elif not isinstance(kernel, StationaryKernel | Distances):
        why = ", by gamma='scale'"
    elif settings.mode == "paper":
        why = ", by gamma='median'"
    else:
        number = RESEMBLED_SHARE * n
        if number >= 1:
            share = f"{number:,.0f} of {n:,} points, a fifth of all"
        else:
            share = "a fifth of all points"
        why = f": so that a point in a dense place resembles {share}"
    return f"Bandwidth {gamma:.3g}{why}."


def _kernel(X: Matrix, points: Points, settings: Settings, prepare: Prepare, seed: int) -> Kernel:
    """The kernel over the distinct points of prepared rows X; its bandwidth is computed if ``gamma`` is "auto"."""
    name = settings.kernel
    looks = is_auto(settings.gamma) and points.n > 1
    gamma: Any = "scale" if is_auto(settings.gamma) else settings.gamma
    some = points.sample(np.arange(points.n), BANDWIDTH_SAMPLE)
    if settings.pairwise:
        kernel = make_kernel(X, name, gamma=gamma)
        if settings.mode == "paper":
            kernel.refuse_indefinite()
        is_whole = points.n == kernel.n and bool((points.first == np.arange(kernel.n)).all())
        kernel = kernel if is_whole else kernel.take(points.first)
        if isinstance(kernel, Distances) and looks and settings.mode == "auto":
            kernel = replace(kernel, gamma=bandwidth(kernel.take(some)))
        return kernel
    if isinstance(name, str) and POINT_KERNELS.get(name) is Cosine:
        lengths_of_directions(X)  # points have other numbers than rows
    rows = rows_of(X, points.first)
    formula = settings.formula or name
    if looks and isinstance(name, str) and name in STATIONARY_KERNELS:
        few = stationary(on_host(rows_of(rows, some)), formula)
        gamma = resolve_gamma(few, "median") if settings.mode == "paper" else bandwidth(few)
        # Rows were checked when they were read; make_kernel checks divided rows for overflow and sorts sparse ones.
        if prepare.scale is None and not sp.issparse(rows):
            return stationary(rows, formula, gamma)
    return make_kernel(rows, formula, gamma=gamma, random_state=seed)


def bandwidth(kernel: StationaryKernel | Distances) -> float:
    """γ at which a point in a denser place than three quarters of all points resembles a fifth of all points."""
    wanted = max(RESEMBLED_SHARE * kernel.n, 1.5)
    if wanted >= kernel.n:
        return resolve_gamma(kernel, "median")
    try:
        return resolve_gamma(kernel, EffectiveCount(wanted, DENSE_QUANTILE))
    except InvalidInputError:  # a quarter of the points are equal but for rounding
        return resolve_gamma(kernel, "median")


#: Half of the middle third of normal numbers, as a share of their middle nine tenths.
MIDDLE_THIRD = 0.131


class ColumnReason(NamedTuple):
    """What a row has in a column, as it is read: "61", "'premium'", "missing"; what is usual there, "19 to 88"; where it is,
    "high", "medium", "early"; whether it is unusual, and the cause if so: "age", "missing age", "spelling of country". Without a
    range, two are empty. ``share`` is that of the column in the distance.
    """

    column: str
    value: str
    usual: str
    side: str
    is_unusual: bool
    cause: str
    share: float = 0.0


class TableColumns(Protocol):
    """Columns, each a block of the numbers of a row: those of ``mosaic.rows.Encoder``, or ``NumberColumns``."""

    @property
    def blocks(self) -> dict[str, slice]: ...

    def reading(self, name: str, z: FloatArray, row: int | None = None) -> ColumnReason: ...


class NamedColumns(TableColumns, Protocol):
    """Columns that a fit has learned: their names, and whether they have rules of their own."""

    @property
    def has_rules(self) -> bool: ...

    @property
    def names(self) -> list[str] | None: ...


@dataclass(frozen=True)
class NumberColumns:
    """Columns of numbers that are taken as they are, or divided by their spread: the low, middle and high value of each name."""

    usual: dict[str, tuple[float, float, float]]

    @cached_property
    def blocks(self) -> dict[str, slice]:
        return {name: slice(j, j + 1) for j, name in enumerate(self.usual)}

    @cached_property
    def _ranges(self) -> dict[str, str]:
        return {
            name: f"{figure(low)} to {figure(high)}" for name, (low, _, high) in self.usual.items()
        }

    def reading(self, name: str, z: FloatArray, row: int | None = None) -> ColumnReason:
        (low, middle, high) = self.usual[name]
        x = float(z[0])
        is_usual = low <= x <= high
        side = "high" if x > middle else "low"
        if is_usual and abs(x - middle) <= MIDDLE_THIRD * (high - low):
            side = "medium"
        return ColumnReason(name, figure(x), self._ranges[name], side, not is_usual, name)


@dataclass(frozen=True)
class UsualRows:
    """The points that belong, the similarity between them, their mean, and the middle nine tenths of each number."""

    points: IntArray
    kernel: Any
    middle: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, selection: Selection) -> UsualRows | None:
        kernel = selection.kernel
        data = selection.data
        if (
            not isinstance(kernel, StationaryKernel)
            or sp.issparse(kernel.X)
            or data.geometry.prepare.directions
        ):
            return None
        points = np.flatnonzero(~selection.is_outlier)
        weights = data.points.weights[points]
        if not weights.sum() > 0:
            return None
        middle, low, high = (np.empty(kernel.X.shape[1]) for _ in range(3))
        for part in row_blocks(len(middle), len(points)):  # of columns
            X = in_double(kernel.X[points, part])
            middle[part] = np.average(X, axis=0, weights=weights)
            low[part], high[part] = np.quantile(X, (0.05, 0.95), axis=0, method="nearest")
        return cls(points, kernel.take(points), middle, low, high)


def columns_of(selection: Selection, encoder: NamedColumns) -> TableColumns | None:
    """The columns that a fit compared; None where they have no names."""
    usual = selection.usual
    names = encoder.names
    if encoder.has_rules:
        return encoder
    if names is None or usual is None:
        return None
    undone = selection.data.geometry.prepare.undone
    values = zip(*(undone(v).tolist() for v in (usual.low, usual.middle, usual.high)), strict=True)
    return NumberColumns(dict(zip(names, values, strict=True)))
