"""Shared parts of the estimators: reading the data, reporting progress, and attributes that read the selection."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mosaic._arrays import FloatArray
from mosaic._codes import BoolArray
from mosaic._devices import beside_as, rows_of
from mosaic.choosing import Constraints, Geometry, Material, Points, Selection, Settings, decision_sample, geometry_of
from mosaic.data.naming import RowNames
from mosaic.encoding import Encoding
from mosaic.estimators._asking import NewRows, explain_new
from mosaic.estimators._jobs import computing_in_threads
from mosaic.estimators._proof import InMemory, same_kernel, strength
from mosaic.estimators._reading import NamedRows, read_prepared, seed_of, with_table, without_scaling
from mosaic.estimators._strategy import Strategy, rank_for
from mosaic.exceptions import SelectionWarning, warn
from mosaic.outliers import EffectiveCounts
from mosaic.sketch import SketchRound

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn < 1.9 has no callbacks

    class CallbackSupport:  # type: ignore[no-redef]
        """Does nothing."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged."""
        return method


__all__ = ["CallbackSupport", "FittedAttributes", "Narrator", "listening", "read_material", "with_callbacks"]

Values = TypeVar("Values")
#: Called with the stage of a fit, a text about it, and the share of it that is done, if known.
Listener: TypeAlias = Callable[[str, str, float | None], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)

#: Largest number of subtasks that a pass reports to scikit-learn callbacks.
PASS_SUBTASKS = 100
#: Seconds between two lines about the same stage, on a terminal, where the line is rewritten, and elsewhere.
SECONDS_ON_TERMINAL, SECONDS_ELSEWHERE = 0.2, 5.0
#: Passes of every round, and their names for the user.
PASSES_OF_A_ROUND = {"gram": "sums", "scores": "looking at all rows"}


def read_material(
    estimator: Any,
    X: Any,
    settings: Settings,
    strategy: Strategy,
    sample_weight: ArrayLike | None,
    constraints: dict[str, Any],
    narrator: Narrator,
    told: Sequence[str] = (),
) -> Material:
    """All points in memory, with their similarity and their effective counts.

    Parameters
    ----------
    estimator : provides the seed; its attributes for the names and the number of features are set
    X, settings, strategy, sample_weight : arguments of the fit
    constraints : arguments of ``Constraints.read``
    narrator : reports the progress
    told : what is told of columns that are not compared, in sentences
    """
    narrator.say("similarities")
    matrix, prepare = read_prepared(estimator, X, sample_weight, settings)
    table = estimator.table_
    settings = without_scaling(settings, table)
    checked = Constraints.read(matrix.shape[0], **constraints)
    points = Points.of(matrix, sample_weight, pairwise=settings.kernel == "precomputed")
    seed = seed_of(estimator.random_state)
    names = getattr(estimator, "feature_names_in_", None) if table is None else table.number_names
    geometry = with_table(geometry_of(matrix, points, settings, prepare, names, seed), table, told)
    max_rank = rank_for(settings, strategy, points.n, matrix)
    proof = InMemory(settings, max_rank, *_warm_start(estimator, settings, points, geometry, max_rank, seed))
    counting = None
    if settings.mode != "paper":
        narrator.say("effective counts")
        counting = EffectiveCounts.of(geometry.kernel, points.weights, seed, settings.max_samples)
    return Material(
        n_rows=matrix.shape[0],
        points=points,
        geometry=geometry,
        constraints=checked,
        counting=counting,
        sample=decision_sample(points, checked),
        seed=seed,
        proof=proof,
        absent=rows_of(matrix, np.flatnonzero(points.group < 0)),
        row_names=X.names_of_rows() if isinstance(X, NamedRows) else None,
    )


def _warm_start(
    estimator: Any, settings: Settings, points: Points, geometry: Geometry, max_rank: int, seed: int
) -> tuple[Encoding | None, bool]:
    """The encoding of the last fit, if it was solved for the same points and kernel, and whether its program is the same."""
    last: Selection | None = estimator.__dict__.get("selection_")
    known: Encoding | None = None if last is None else last.material.__dict__.get("encoding")
    if not getattr(estimator, "warm_start", False) or last is None or known is None:
        return None, False
    old, proof = last.material.points, last.material.proof
    same = all(np.array_equal(getattr(old, name), getattr(points, name)) for name in ("first", "weights", "priority"))
    same = same and same_kernel(settings, geometry.gamma) == same_kernel(last.settings, last.material.geometry.gamma)
    if not same or not isinstance(proof, InMemory):
        return None, False

    def program(of: Settings, rank: int, drawn: int) -> tuple[Any, ...]:
        return strength(of), of.solver, of.gap, of.max_iter, rank, drawn

    solved = program(settings, max_rank, seed) == program(proof.settings, proof.max_rank, last.material.seed)
    return known, solved


@computing_in_threads
class FittedAttributes:
    """Attributes of a fitted estimator, read from its ``selection_``. None exist before ``fit``, as scikit-learn expects."""

    selection_: Selection
    table_: Any
    kernel: Any

    @property
    def _found(self) -> Selection:
        if "selection_" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        return self.selection_

    def _given(self, values: Values) -> Values:
        """Values as an array of the library, and on the device, of the data of fit."""
        return beside_as(getattr(self._found.kernel, "X", values), values)

    def save(self, path: str | PathLike[str], *, table: Any = None, force: bool = False) -> None:
        """Write the fitted model to a file that ``mosaic.load`` reads, in any process: numbers and JSON, no pickle.

        Parameters
        ----------
        path : of the file, by custom ending in .mosaic
        table : the table of ``fit``, from ``mosaic.data.open_table``. Names of its rows and cells of picks and outliers are kept
            for ``mosaic explain`` and ``mosaic report``
        force : replace what is there

        Notes
        -----
        1. The file holds the rows that the model has in memory. Kernels that are functions cannot be saved.
        2. After a fit by passes, ``certificate_`` and ``labels_`` are kept if they were read before; the rows are not.

        Examples
        --------
        >>> import tempfile
        >>> import mosaic
        >>> model = mosaic.MOSAIC(5).fit(mosaic.datasets.swiss_roll(200))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/roll.mosaic")
        ...     mosaic.load(f"{folder}/roll.mosaic")
        MOSAIC(n_representatives=5)
        """
        from mosaic.estimators._saving import save  # it imports the estimators

        check_is_fitted(self)
        save(self, path, table=table, force=force)

    def explain_new(self, X: Any) -> NewRows:
        """Which representative stands for each new row, how similar it is, whether the row is an outlier, and why.

        Parameters
        ----------
        X : rows as for ``predict``: an array, a data frame, or a file; large files are read in passes

        Returns
        -------
        NewRows, with one entry for each row in ``representative``, ``similarity``, ``representation_error``,
        ``effective_count``, ``is_outlier`` and ``reason``

        Examples
        --------
        >>> import pandas as pd
        >>> from mosaic import MOSAIC, datasets
        >>> points = pd.DataFrame(datasets.blobs_with_gross_outliers().X, columns=["x", "y"])
        >>> new = MOSAIC(5).fit(points).explain_new(pd.DataFrame({"x": [2.5, 2.5], "y": [0.0, 99.0]}))
        >>> new.is_outlier.tolist(), int(new.representative[1])
        ([False, True], -1)
        >>> print(new.reason[1])  # doctest: +ELLIPSIS
        y 99, usual ... to .... No row of the data looks like it; the threshold is ...
        """
        return explain_new(self, X)

    def _warn(self) -> None:
        for sentence in self.selection_.warnings:
            warn(SelectionWarning(sentence))

    @property
    def row_names_(self) -> RowNames | None:
        """The names of the rows, from the index of a data frame or a column of ids; None where they have none."""
        return self._found.material.row_names  # type: ignore[return-value]

    @property
    def effective_count_(self) -> FloatArray:
        """Effective count of each row: how many of the rows that a program compares look like it; 1 if it is alone."""
        return self._given(self._found.effective_count)

    @property
    def outlier_probability_(self) -> FloatArray:
        """The paper's OP of every row."""
        return self._given(self._found.outlier_probability)

    @property
    def is_outlier_(self) -> BoolArray:
        """Mask of the rows that are outliers."""
        return self._given(self._found.outlier_mask)

    @property
    def n_iter_(self) -> int:
        """Steps of the solver; the first access to this, alpha_ or lam_ solves the program."""
        return max(self._found.material.solved.n_iter, 1)  # checking the start counts as a step

    @property
    def alpha_(self) -> float:
        """Strength of the program, as a multiple of the critical one."""
        return self._found.material.solved.alpha

    @property
    def lam_(self) -> float:
        """Strength of the program."""
        return self._found.material.solved.lam

    @property
    def gamma_(self) -> float | None:
        """Bandwidth."""
        return self._found.material.geometry.gamma

    @property
    def column_scale_(self) -> FloatArray | None:
        """Divisors of the columns, None if columns were taken as they are."""
        return self._found.material.geometry.prepare.divisors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = True
        return tags


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A context in which fits report their progress to the listener; ``verbose`` writes nothing.

    Examples
    --------
    >>> from mosaic import MOSAIC, datasets
    >>> stages = []
    >>> with listening(lambda stage, text, share: stages.append(stage)):
    ...     model = MOSAIC(10).fit(datasets.swiss_roll(300))
    >>> stages[0], stages[-1]
    ('similarities', 'done')
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


class Narrator:
    """Reports the progress of a fit to a listener, to scikit-learn callbacks (a pass is a task), or, if ``verbose``, on stderr.

    On a terminal, one line is rewritten a few times a second; elsewhere, a line is written every few seconds.
    """

    def __init__(self, estimator: Any):
        self.estimator, self.listener = estimator, _LISTENER.get()
        self.verbose = bool(estimator.verbose) and self.listener is None
        self.started = self.written = time.monotonic()
        self.live = self.verbose and sys.stderr.isatty()
        self.stage = ""
        self.n, self.most_rounds, self.round = 1, 1, 0
        self.gap: float | None = None
        self.root: Any = None
        self.task: Any = None
        self.task_name, self.subtasks = "", 0

    def __enter__(self) -> Self:
        if hasattr(self.estimator, "_skl_callbacks"):
            self.root = self.estimator._init_callback_context(max_subtasks=None)
            self.root.call_on_fit_task_begin(estimator=self.estimator)
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if self.root is not None and kind is None:
            self._end_task()
            self.root.call_on_fit_task_end(estimator=self.estimator)
        self.root = None  # later passes, for attributes that are computed on access, are not part of the fit

    def expect(self, n: int, most_rounds: int | None) -> None:
        """Note that a fit by passes over n rows begins."""
        self.n, self.most_rounds = n, 3 if most_rounds is None else most_rounds

    def on_round(self, done: SketchRound) -> None:
        """Note that a round has ended."""
        self.round, self.gap = done.number + 1, done.gap

    def on_pass(self, name: str, rows: int, seconds: float) -> None:
        """Report the progress of a pass: round, share of the rows, rows per second, bound on the gap, passes left."""
        self._call_back(name, rows)
        kind = name.split()[0]
        what = PASSES_OF_A_ROUND.get(kind, name)
        where = f"round {self.round + 1}, {what}" if kind in PASSES_OF_A_ROUND else what
        left = 2 * (self.most_rounds - self.round) - (kind == "scores")
        gap = "" if self.gap is None else f", gap {self.gap:.1e}"
        speed = f", {rows / seconds:,.0f} rows/s" if seconds > 0.1 else ""
        at_most = f", {left} passes left at most" if left > 0 and kind in (*PASSES_OF_A_ROUND, "look") else ""
        share = rows / self.n
        self._tell(name, f"{where}: {100 * share:.0f} %{speed}{gap}{at_most}", share)

    def _call_back(self, name: str, rows: int) -> None:
        if self.root is None:
            return
        if name != self.task_name:
            self._end_task()
            self.task = self.root.subcontext(task_name=name, max_subtasks=PASS_SUBTASKS)
            self.task.call_on_fit_task_begin(estimator=self.estimator)
            self.task_name, self.subtasks = name, 0
        while self.task is not None and self.subtasks < PASS_SUBTASKS * rows // self.n:
            part = self.task.subcontext(task_name=f"part of {name}")
            part.call_on_fit_task_begin(estimator=self.estimator)
            part.call_on_fit_task_end(estimator=self.estimator)
            self.subtasks += 1

    def _end_task(self) -> None:
        if self.task is not None:
            self.task.call_on_fit_task_end(estimator=self.estimator, metadata={"round": self.round, "gap": self.gap})
            self.task = None

    def say(self, stage: str) -> None:
        """Report that a stage without steps begins."""
        self._tell(stage, stage)

    def done(self, text: str) -> None:
        """Report the result at the end of the fit."""
        self._tell("done", text, 1.0, end="\n")

    def _tell(self, stage: str, text: str, share: float | None = None, end: str = "") -> None:
        if self.listener is not None:
            self.listener(stage, text, share)
        now, wait = time.monotonic(), SECONDS_ON_TERMINAL if self.live else SECONDS_ELSEWHERE
        if not self.verbose or (stage == self.stage and now - self.written < wait):
            return
        self.stage, self.written = stage, now
        line = f"[{type(self.estimator).__name__}] {now - self.started:5.1f} s  {text}"
        sys.stderr.write(f"\r{line:<110}{end}" if self.live else line + "\n")
        sys.stderr.flush()
