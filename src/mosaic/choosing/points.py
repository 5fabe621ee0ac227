"""The input of choosing: the distinct points of the data, their similarity and effective counts; of many rows, a sample.

Every distinct row has a random number, its priority, which is a hash of its entries. The rows with the lowest priorities are the
sample, whatever the order of rows, blocks and engine. A row that is among the lowest of all is among the lowest of every part, so
its copies are counted exactly. Rows with at least n/size copies, and no fewer than 32, are in the sample in any case: where a
bucket of priorities has so many rows that were not drawn, a second pass counts these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import reduce
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray, in_blocks, rescale_weights, row_blocks, row_norms_squared
from mosaic.arrays.codes import equal_rows, priority, row_codes
from mosaic.arrays.passes import BlockResult, TakeRows, Task, Together, part_of
from mosaic.arrays.xp import as_double, is_on_device, on_host, rows_of, to_device_of
from mosaic.choosing.outliers import CountingPrograms
from mosaic.choosing.settings import Constraints
from mosaic.door import as_weights
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import Kernel, PointKernel
from mosaic.program.encoding import Certificate, CountModel, Encoding
from mosaic.program.solvers import Status

if TYPE_CHECKING:
    from mosaic.choosing.geometry import Geometry

Check: TypeAlias = Callable[[Any, int], None]  # raises an error if rows are not valid; the number is that of the first row
Value = TypeVar("Value")
#: Buckets of priorities: the first 16 of their 64 bits.
BUCKETS = 1 << 16


@dataclass(frozen=True)
class Points:
    """The distinct points with weight, ordered by their distance from the centre of all, which depends on no order of the rows.

    ``first`` are the rows of the points, of copies the first, ``point_of`` the points of all rows, -1 without weight. ``weights``
    say how often points count, copies added up; ``priority`` is a random number that depends on the point alone.
    """

    first: IntArray
    point_of: IntArray
    weights: FloatArray
    priority: NDArray[np.uint64]

    @classmethod
    def of(cls, X: Any, sample_weight: ArrayLike | None = None, *, pairwise: bool = False, central_first: bool = True) -> Points:
        """The distinct points of X (similarities if ``pairwise``), by centrality or, which is faster, by priority."""
        n = X.shape[0]
        weights = np.ones(n) if sample_weight is None else copies_of_rows(sample_weight, n)
        rows = np.flatnonzero(weights > 0)
        counted = X if len(rows) == n else rows_of(X, rows)
        codes = row_codes(counted)
        equal = equal_rows(counted, codes)
        total = equal.sums(weights if len(rows) == n else weights[rows])
        distinct = counted if equal.is_trivial else rows_of(counted, equal.first)
        if pairwise:
            drawn = np.random.default_rng(0).permutation(len(equal.first)).astype(np.uint64)
            members, share = rows[equal.first], np.zeros(X.shape[1])
            share[members] = total / total.sum()
            apart = np.asarray(X.diagonal(), np.float64)[members] - 2.0 * np.asarray(X[members] @ share).ravel()  # ‖φ_i − φ̄‖² − c
            order = np.argsort(_in_steps(apart), kind="stable")
        else:
            drawn = priority(codes if equal.is_trivial else codes[equal.first])
            order = np.lexsort((drawn, _in_steps(_centre_distances(distinct, total)))) if central_first else np.argsort(drawn)
        number = np.empty(len(order), np.intp)
        number[order] = np.arange(len(order))
        if equal.is_trivial and len(rows) == n:  # at many points every step counts
            return cls(order, number, total if sample_weight is None else total[order], drawn[order])
        point_of = np.full(n, -1, np.intp)
        point_of[rows] = number[equal.group]
        return cls(rows[equal.first[order]], point_of, total[order], drawn[order])

    @property
    def n(self) -> int:
        return len(self.first)

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    def spread(self, values: Any, absent: Any) -> Any:
        """The value of its point for every row of the data; ``absent`` for rows without weight."""
        return np.where(self.point_of >= 0, np.asarray(values)[self.point_of], absent)

    def sample(self, among: IntArray, size: int) -> IntArray:
        """At most ``size`` of the points ``among``, in their order: frequent points, then those with the lowest priorities."""
        if len(among) <= size:
            return among
        return among[np.sort(np.argpartition(self.sampling_order(among, size), size - 1)[:size])]

    def sampling_order(self, among: IntArray, size: int) -> NDArray[np.uint64]:
        """Numbers by which ``size`` of the points ``among`` are sampled, lowest first; 0 for frequent points, always sampled."""
        priority, weights = self.priority[among], self.weights[among]
        total = float(weights.sum())
        if float(weights.max(initial=0.0)) * size < total:
            return priority
        return np.where(weights * size >= total, np.uint64(0), priority)


def copies_of_rows(sample_weight: ArrayLike, n: int) -> FloatArray:
    """How often each of n rows counts: numbers of copies as they are, other weights so that rows count once on average."""
    weights = as_weights(sample_weight, n)
    largest = float(weights.max(initial=0.0))
    if not largest:
        fault = "is zero for all rows, so there is nothing to represent"
        raise InvalidInputError(fault, "Give some row a positive weight.", parameter="sample_weight")
    if largest <= 2.0**53 and (weights == np.round(weights)).all():
        return weights
    weights = weights / largest
    return np.asarray(weights * (np.count_nonzero(weights) / weights.sum()))


def _centre_distances(X: Any, weights: FloatArray) -> FloatArray:
    """‖x_i − x̄‖², x̄ the weighted mean, in any unit of X."""
    if is_on_device(X):

        def add(part: slice) -> FloatArray:
            return on_host(to_device_of(X, weights[part]) @ as_double(rows_of(X, part)))

        centre = np.sum(in_blocks(add, X.shape[0], X.shape[1], on=X), axis=0) / weights.sum()
    else:
        centre = np.asarray(weights @ X, np.float64).ravel() / weights.sum()
    distances = np.empty(X.shape[0])

    def measure(part: slice) -> None:
        if sp.issparse(X):
            block = X[part].astype(np.float64)
            distances[part] = block.power(2).sum(axis=1) - 2.0 * (block @ centre) + centre @ centre
        else:
            distances[part] = row_norms_squared(rows_of(X, part) - to_device_of(X, centre))

    in_blocks(measure, X.shape[0], X.shape[1], on=X)
    return distances


def _in_steps(distances: FloatArray) -> FloatArray:
    """Distances as whole numbers of steps that are larger than rounding: 1e-9 of their range."""
    lowest = float(distances.min())
    return np.round((distances - lowest) / (1e-9 * (float(distances.max()) - lowest or 1.0)))


@dataclass
class Draw:
    """A pass that finds, of every kind of rows, the distinct rows with the lowest priorities: ``sizes`` of each kind. All rows
    are of kind 0, and of one more in ``kinds``, 0 for none. Rows count ``weights`` times; only buckets ``among`` are looked at.
    ``limits``, the highest priorities that may still be among the lowest, only save work.
    """

    sizes: tuple[int, ...]
    kinds: IntArray | None = None
    weights: FloatArray | None = None
    among: BoolArray | None = None
    check: Check | None = None
    limits: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        self.limits = np.full(len(self.sizes), np.iinfo(np.uint64).max)

    def map_block(self, rows: Any, start: int) -> BlockResult:
        if self.check is not None:
            self.check(rows, start)
        found = self.find(priority(row_codes(rows)), start)
        return found | {"rows": np.asarray(rows[found["first"] - start])}

    def merge(self, left: BlockResult, right: BlockResult) -> BlockResult:
        names = ("kinds", "priority", "first", "copies")
        kept, both = self._lowest(*(np.concatenate([left[name], right[name]]) for name in names))
        both["buckets"] = left["buckets"] + right["buckets"]
        if "rows" in left:
            n_left, here = len(left["first"]), kept < len(left["first"])
            rows = np.empty((len(kept), *left["rows"].shape[1:]), np.result_type(left["rows"], right["rows"]))
            rows[here], rows[~here] = left["rows"][kept[here]], right["rows"][kept[~here] - n_left]
            both["rows"] = rows
        return both

    def find(self, priority: NDArray[np.uint64], start: int) -> BlockResult:
        """What consecutive rows with these priorities have of them, without the rows."""
        stop, bucket = start + len(priority), _bucket(priority)
        copies = np.ones(len(priority)) if self.weights is None else self.weights[start:stop]
        may = copies > 0 if self.among is None else (copies > 0) & self.among[bucket]
        of = [np.flatnonzero(may & (priority <= self.limits[0]))]
        kinds = [np.zeros(len(of[0]), np.intp)]
        if self.kinds is not None:
            more = self.kinds[start:stop]
            of.append(np.flatnonzero(may & (more > 0) & (priority <= self.limits[more])))
            kinds.append(more[of[1]])
        at = np.concatenate(of)
        _, found = self._lowest(np.concatenate(kinds), priority[at], at + start, copies[at])
        return found | {"buckets": np.bincount(bucket, copies, BUCKETS)}

    def _lowest(
        self, kinds: IntArray, priority: NDArray[np.uint64], first: IntArray, copies: FloatArray
    ) -> tuple[IntArray, BlockResult]:
        """The lowest of every kind, and their places. Of equal rows, the first comes first."""
        order = np.argsort(priority, kind="stable")
        if self.kinds is not None:
            order = order[np.argsort(kinds[order], kind="stable")]
        kinds, priority, copies = kinds[order], priority[order], copies[order]
        differs = np.ones(len(order), dtype=bool)
        differs[1:] = (priority[1:] != priority[:-1]) | (kinds[1:] != kinds[:-1])
        starts = np.flatnonzero(differs)
        copies = np.add.reduceat(copies, starts) if len(starts) else copies
        kinds, priority, places = kinds[starts], priority[starts], order[starts]
        rank = np.arange(len(kinds)) - np.searchsorted(kinds, kinds)
        sizes = np.array(self.sizes)
        last = rank == sizes[kinds] - 1
        limits = self.limits.copy()  # workers may have got an array that cannot be changed
        limits[kinds[last]] = np.minimum(limits[kinds[last]], priority[last])
        self.limits = limits
        kept = np.flatnonzero(rank < sizes[kinds])
        places = places[kept]
        return places, {"kinds": kinds[kept], "priority": priority[kept], "first": first[places], "copies": copies[kept]}


@dataclass(frozen=True)
class Drawn:
    """Rows in memory: a random sample of the distinct rows (``is_drawn``), and rows that constraints name; their ``numbers`` in
    the data, ascending, how many rows are equal to each, and how many it stands for.
    """

    numbers: IntArray
    rows: Any
    is_drawn: BoolArray
    copies: FloatArray
    weights: FloatArray


def draw_by_passes(
    run: Callable[[str, Task], BlockResult], n: int, size: int, constraints: Constraints | None = None, check: Check | None = None
) -> Drawn:
    """The sample of rows that are read in passes; ``run`` makes a pass, given its name and its task."""
    kinds, sizes, named = _named(n, size, constraints)
    looked: BlockResult = {}

    def look(task: Draw) -> BlockResult:
        if task.among is not None:
            return run("frequent rows", task)
        looked.update(run("look", Together({"draw": task, "named": TakeRows(named)})))
        return part_of(looked, "draw")

    found, enough = _find(look, n, size, Draw(sizes, kinds, check=check))
    numbers, places = np.unique(np.concatenate([found["first"], named]), return_index=True)
    return _drawn(found, numbers, np.concatenate([found["rows"], part_of(looked, "named")["rows"]])[places], enough)


def draw_in_memory(X: Any, size: int, constraints: Constraints, weights: FloatArray | None = None) -> Drawn:
    """The sample of the rows of an array, sparse or dense, on whatever device."""
    n, priorities = X.shape[0], priority(row_codes(X))
    kinds, sizes, named = _named(n, size, constraints)

    def look(task: Draw) -> BlockResult:
        return reduce(task.merge, (task.find(priorities[part], part.start) for part in row_blocks(n, 1, 1 << 17)))

    found, enough = _find(look, n, size, Draw(sizes, kinds, weights))
    numbers = np.union1d(found["first"], named)
    return _drawn(found, numbers, rows_of(X, numbers), enough)


def _named(n: int, size: int, constraints: Constraints | None) -> tuple[IntArray | None, tuple[int, ...], IntArray]:
    """The kinds of rows that constraints make, how many of each are wanted, and the rows that they name."""
    if constraints is None:
        return None, (size,), np.zeros(0, np.intp)
    named = np.unique(constraints.must if constraints.start is None else np.union1d(constraints.must, constraints.start))
    if constraints.quotas is None and constraints.allowed.all():
        return None, (size,), named
    kinds = np.where(constraints.allowed, constraints.group + 1, 0)
    # A restricted pool, and every group with a quota, has an eighth of the sample, or their number's part of it.
    each = max(size // max(8, len(constraints.names)), 1)
    return kinds, (size, *[each] * len(constraints.names)), named


def _bucket(priority: NDArray[np.uint64]) -> IntArray:
    return (priority >> np.uint64(48)).astype(np.intp)


def _find(look: Callable[[Draw], BlockResult], n: int, size: int, task: Draw) -> tuple[BlockResult, float]:
    """What one look at the rows draws, or two where rows that were not drawn may have many copies; and how many are many."""
    found = look(task)
    enough = float(found["buckets"].sum()) * max(1.0 / size, 32 / n)  # so many rows are rarely in a bucket by chance
    sampled = found["kinds"] == 0
    drawn, copies = found["priority"][sampled], found["copies"][sampled]
    often = found["buckets"] - np.bincount(_bucket(drawn), copies, BUCKETS) >= enough
    if often.any():
        more = look(Draw((n,), None, task.weights, often))
        new = (more["copies"] >= enough) & ~np.isin(more["priority"], drawn)
        found |= {name: np.concatenate([found[name], more[name][new]]) for name in found if name != "buckets"}
    return found, enough


def _drawn(found: BlockResult, numbers: IntArray, rows: Any, enough: float) -> Drawn:
    sampled = found["kinds"] == 0
    places = np.searchsorted(numbers, found["first"][sampled])
    is_drawn, copies = np.zeros(len(numbers), dtype=bool), np.ones(len(numbers))
    is_drawn[places], copies[places] = True, found["copies"][sampled]
    weights, total = np.ones(len(numbers)), float(found["buckets"].sum())
    weights[is_drawn] = rescale_weights(copies[is_drawn], total / enough, total)
    return Drawn(numbers, rows, is_drawn, copies, weights)


class once(Generic[Value]):  # noqa: N801 - used as a decorator
    """A property that is computed on first access and kept in ``computed`` of its object."""

    def __init__(self, method: Callable[[Any], Value]):
        self.method, self.__doc__ = method, method.__doc__

    def __get__(self, owner: Any, kind: type[Any] | None = None) -> Value:
        name = self.method.__name__
        if name not in owner.computed:
            owner.computed[name] = self.method(owner)
        return owner.computed[name]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Solved:
    """What a saved model keeps of a solved program (``mosaic.Encoding``)."""

    influence: FloatArray
    lam: float
    alpha: float
    n_iter: int
    total: float
    status: Status
    certificate: Certificate


@dataclass(frozen=True)
class FitData:
    """All input of choosing. ``points`` are those in memory: all, or a sample of many, whose weights are numbers of rows that
    they stand for; then ``row_numbers`` are the rows in the data of those in memory, ascending. ``absent`` are rows without
    weight, prepared. ``counting`` is None for the paper's measure, which comes from the encoding. ``all_rows`` solves the program
    and answers for all rows (``mosaic.estimators.proof``).
    """

    n_rows: int
    points: Points
    geometry: Geometry
    constraints: Constraints
    counting: CountingPrograms | None
    seed: int
    all_rows: Any = field(repr=False)
    absent: Any = field(repr=False)
    row_numbers: IntArray | None = field(default=None, repr=False)
    row_names: Any = field(default=None, repr=False)
    computed: dict[str, Any] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        kept = ["solved"] if self.is_solved else []
        if self.counting is None:  # the counts come from the encoding
            kept += ["counts", "_paper_counts"]
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return state | {"computed": {name: getattr(self, name) for name in kept}}

    @property
    def kernel(self) -> Kernel:
        return self.geometry.kernel

    @once
    def encoding(self) -> Encoding:
        """The certified encoding of the points; the first access solves the program."""
        return self.all_rows.encoding(self)  # type: ignore[no-any-return]

    @once
    def solved(self) -> Solved:
        return Solved(**{each.name: getattr(self.encoding, each.name) for each in fields(Solved)})

    @property
    def is_solved(self) -> bool:
        return "encoding" in self.computed or "solved" in self.computed

    @once
    def counts(self) -> FloatArray:
        if self.counting is None:
            return np.asarray(self.encoding.effective_count)
        return self.counting.of_points(self.kernel)

    @property
    def count_total(self) -> float:
        """Weight of the points that a point could resemble."""
        return self.solved.total if self.counting is None else self.counting.total

    def counts_at(self, Y: Any) -> FloatArray:
        """Effective counts of prepared rows; rows of the data have the same counts as in the data."""
        return self._paper_counts.counts(Y) if self.counting is None else self.counting.at(Y)

    @once
    def _paper_counts(self) -> CountModel:
        kernel = self.kernel
        X = kernel.X if isinstance(kernel, PointKernel) else kernel.block(slice(None), np.arange(kernel.n))
        return self.encoding.count_model(row_codes(X))

    def rows_in_data(self, rows: IntArray) -> IntArray:
        return rows if self.row_numbers is None else self.row_numbers[rows]

    def called(self, row: int) -> str:
        return f"row {row}" if self.row_names is None else str(self.row_names.called(row))
