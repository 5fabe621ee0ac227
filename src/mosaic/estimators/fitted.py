"""What all fitted estimators have: attributes that read the selection, answers for new rows, and how they are shown and saved."""

from __future__ import annotations

from os import PathLike
from typing import Any, TypeVar, overload

from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.blocks import BoolArray, FloatArray
from mosaic.arrays.xp import as_user_array
from mosaic.choosing import Decisions, Explanation, Selection, columns_of, explain_row
from mosaic.estimators.asking import NewRows, explain_new
from mosaic.estimators.progress import computing_in_threads
from mosaic.exceptions import SelectionWarning, warn
from mosaic.facts import Facts
from mosaic.rows.names import RowNames, as_row

Values = TypeVar("Values")


@computing_in_threads
class FittedAttributes:
    """Attributes of a fitted estimator, read from its ``selection_``. None exist before ``fit``, as scikit-learn expects."""

    selection_: Selection
    table_: Any
    kernel: Any
    _facts: Facts | None = None

    @property
    def _found(self) -> Selection:
        if not hasattr(self, "selection_"):
            raise AttributeError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        return self.selection_

    def _given(self, values: Values) -> Values:
        """Values as an array of the library, and on the device, of the data of fit."""
        return as_user_array(getattr(self._found.kernel, "X", values), values)

    def save(self, path: str | PathLike[str], *, table: Any = None, force: bool = False) -> None:
        """Write the fitted model to a file that ``mosaic.load`` reads, in any process: numbers and JSON, no pickle.

        Parameters
        ----------
        path : of the file, by custom ending in .mosaic
        table : the table of ``fit``, from ``mosaic.read``. Names of its rows and cells of picks and outliers are kept
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
        from mosaic.estimators.saving import save  # it imports the estimators

        check_is_fitted(self)
        save(self, path, table=table, force=force)

    @property
    def facts_(self) -> Facts:
        """Picks, outliers, certificate, curve, map and decisions as plain data, computed when they are first read."""
        selection = self._found
        if self._facts is None or self._facts.selection is not selection:
            self._facts = Facts(self)
        return self._facts

    @overload
    def explain(self, i: None = None) -> Decisions: ...

    @overload
    def explain(self, i: int | str) -> Explanation: ...

    def explain(self, i: int | str | None = None) -> Decisions | Explanation:
        """Why row i of the data was chosen, rejected or left out; without a row, the decisions about the data, and the reasons.

        A row is given by its number or, as text, by its name (``row_names_``).

        Examples
        --------
        >>> from mosaic import MOSAIC, datasets
        >>> print(MOSAIC(20).fit(datasets.blobs_with_gross_outliers().X).explain())  # doctest: +ELLIPSIS
        Columns are taken as they are.
        Bandwidth ...: so that a point in a dense place resembles 80 of 400 points, a fifth of all.
        20 representatives: the number that was given.
        Chosen so that the rows that belong are as similar as possible to the nearest representative.
        8 outliers: fewer than ... rows look like them, and their neighbours are far. Of clean rows, about 1 % ...
        """
        check_is_fitted(self)
        if i is None:
            return self.selection_.decisions
        columns = columns_of(self.selection_, self.table_, getattr(self, "feature_names_in_", None))
        return explain_row(self.selection_, as_row(i, self.row_names_), columns)

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

    # The attributes are described in the classes that have them.

    @property
    def row_names_(self) -> RowNames | None:
        return self._found.material.row_names  # type: ignore[no-any-return]

    @property
    def effective_count_(self) -> FloatArray:
        return self._given(self._found.effective_count)

    @property
    def outlier_probability_(self) -> FloatArray:
        return self._given(self._found.outlier_probability)

    @property
    def is_outlier_(self) -> BoolArray:
        return self._given(self._found.outlier_mask)

    @property
    def n_iter_(self) -> int:
        return max(self._found.material.solved.n_iter, 1)  # checking the start counts as a step

    @property
    def alpha_(self) -> float:
        return self._found.material.solved.alpha

    @property
    def lam_(self) -> float:
        return self._found.material.solved.lam

    @property
    def gamma_(self) -> float | None:
        return self._found.material.geometry.gamma

    @property
    def column_scale_(self) -> FloatArray | None:
        return self._found.material.geometry.prepare.scale

    def _html_repr(self) -> str:
        """A fitted estimator shows its result above scikit-learn's diagram."""
        diagram = str(estimator_html_repr(self))
        if not hasattr(self, "selection_"):
            return diagram
        from mosaic.show.card import card  # it imports the estimators, and only notebooks need it

        return card(self.facts_) + diagram

    def _get_fitted_attr_html(self, doc_link: str = "") -> str:
        return ""  # the diagram would read all attributes, of which some solve a program; the card has what matters

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = bool(self.kernel == "precomputed")
        tags.input_tags.sparse = True
        return tags
