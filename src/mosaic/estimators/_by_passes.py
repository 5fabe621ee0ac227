"""The part of a selector that fits by passes: it keeps a model of the points in memory, and asks it about all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mosaic._arrays import IntArray
from mosaic.encoding import Encoding
from mosaic.engines import Source, open_source
from mosaic.estimators._certificate import SelectionCertificate
from mosaic.estimators._choice import Wants
from mosaic.estimators._demands import Demands
from mosaic.estimators._nearby import look_twice
from mosaic.estimators._plan import Plan
from mosaic.estimators._progress import Narrator
from mosaic.estimators._sketched import (
    Passes,
    answers_for_rows,
    certify_choice,
    demands_in_memory,
    encoding_of,
    explain_by_passes,
    known,
    open_journal,
    points_of,
    rows_to_fetch,
    sketch_of,
)
from mosaic.estimators._solving import seed_of, warn_of_gap
from mosaic.exceptions import InvalidInputError
from mosaic.passes import TakeRows
from mosaic.tuning import neighbours_wanted

__all__ = ["FitByPasses", "explain_by_passes"]

#: What a fit by passes takes over from the model of its points in memory, and what it says of all rows when asked.
TAKEN_OVER = (
    "_solved", "_count_model", "column_scale_", "_encoding_certificate", "alpha_", "lam_", "gamma_", "n_iter_", "_wanted",
    "_choice", "_chosen_kernel", "n_representatives_", "outlier_threshold_", "coverage_", "_max_rank", "_neighbours_wanted",
)  # fmt: skip
PER_ROW = (
    "labels_", "is_outlier_", "effective_count_", "outlier_probability_", "representation_error_", "influence_",
)  # fmt: skip


class FitByPasses:
    """Of a selector, what it does with data that is not taken into memory. The selector has all else."""

    _passes: Passes
    _certificate: SelectionCertificate | None
    _previous: Encoding | None

    def _fit_by_passes(
        self, source: Source, wants: Wants, quotas: Any, constraints: dict[str, Any], narrator: Narrator
    ) -> None:
        """A sample in memory; the program is that of all rows."""
        n = source.n
        k = wants.number(n)
        wants = wants if k is None else replace(wants, n_representatives=k)
        wished = n / wants.min_support if wants.min_support else k
        plan = Plan.of(self, n, source.n_features, k)
        demanded = {name: known(value) for name, value in {"quotas": quotas, **constraints}.items()}
        narrator.expect(n, plan.n_rounds)
        journal = open_journal(self, source, plan, narrator.on_pass, demanded)
        seed = journal.remember("seed", seed_of(self.random_state))
        free = quotas is None and all(value is None for value in constraints.values())
        whole = None if free else Demands.read(n, quotas=quotas, **constraints)
        fetched = rows_to_fetch(whole, k, plan.sample, seed)
        must = np.zeros(0, np.intp) if whole is None else whole.must
        sketch, kernel, scale = sketch_of(self, journal, plan, wished, fetched, must, seed, narrator.on_round)
        encoding = encoding_of(sketch, kernel, n, self.tol)
        warn_of_gap(encoding, self.tol, "Raise n_initial or n_rounds, or widen the kernel (a smaller gamma).")
        narrator.say("effective counts")
        look = look_twice(self, kernel, encoding, points_of(sketch, kernel, None), seed)
        demands = demands_in_memory(sketch, whole)
        points = points_of(sketch, kernel, n)
        solved, choice = self._chosen(points, encoding, look, demands, seed, wants, narrator)
        # A share of representatives is one of all rows.
        model: Any = type(self)(**(self.get_params(deep=False) | {"n_representatives": wants.n_representatives}))
        model._absent = kernel.X[:0]
        model._max_rank, model._neighbours_wanted = plan.n_initial, neighbours_wanted(len(sketch.sample), wished)
        model._keep(solved, look.model, scale, encoding)
        model._adopt(wants, choice)
        model.n_features_in_ = source.n_features
        if source.names is not None:
            model.feature_names_in_ = np.array(source.names, dtype=object)
        self._forget_passes()
        self._previous = None
        self._passes = Passes(n, journal, sketch, kernel, scale, model)
        self._adopt_passes()

    def _adopt_passes(self) -> None:
        """Take over what the model of the points in memory says; what it says of all rows, when asked."""
        model = self._passes.model
        for name in TAKEN_OVER:
            setattr(self, name, getattr(model, name))
        for name in PER_ROW:
            self.__dict__.pop(name, None)
        self._certificate = None
        self.representative_indices_ = self._row_numbers(model.representative_indices_)

    def _forget_passes(self) -> None:
        for name in (*PER_ROW, "_passes"):
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        """Answers for all rows, after a fit by passes: one more pass when the first of them is asked for."""
        if name not in PER_ROW or "_passes" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        passes = self._passes
        if name == "influence_":
            influence = np.zeros(passes.n)
            influence[passes.sketch.sample.first] = passes.model.influence_
            self.influence_ = influence
        else:
            if passes.journal is None:
                raise AttributeError(
                    f"{name} was not asked for before this model was saved or copied, and its rows do not come with it. "
                    "predict, score_samples and transform answer for rows that are passed to them."
                )
            for answer, values in answers_for_rows(passes).items():
                # What the model says of its own points comes first: it knows what was demanded of them.
                own = np.array(values)  # what comes from other processes may be read-only
                own[passes.sketch.sample.first] = getattr(passes.model, answer)
                setattr(self, answer, own)
        return self.__dict__[name]

    def __getstate__(self) -> Any:
        """All but where the rows are."""
        state: Any = super().__getstate__()
        if "_passes" in state:
            state = {**state, "_passes": replace(state["_passes"], journal=None)}
        return state

    @property
    def _n_rows(self) -> int:
        return self._passes.n if "_passes" in self.__dict__ else len(self.labels_)

    def _row_numbers(self, rows: IntArray) -> IntArray:
        """Rows of the data, from rows of what is in memory."""
        return self._passes.sketch.sample.first[rows] if "_passes" in self.__dict__ else rows

    def _rethreshold_by_passes(self, changes: dict[str, Any]) -> None:
        """Choose again among the points in memory; a share of representatives is one of all rows."""
        k = changes.get("n_representatives")
        as_number = {"n_representatives": max(1, round(k * self._n_rows))} if isinstance(k, float) else {}
        self._passes.model.rethreshold(**(changes | as_number))
        self.set_params(**changes)
        self._adopt_passes()

    def _certificate_by_passes(self) -> SelectionCertificate:
        if self._passes.journal is None:
            raise InvalidInputError(  # an AttributeError would be taken for there being no such property
                "certificate_ was not asked for before this model was saved or copied, and its rows do not come with it."
            )
        return certify_choice(self._passes, explain_by_passes(self._passes, None))

    def _rows_of_source(self, X: Any) -> Any:
        """The representatives' rows, of data that is not in memory: one pass over it. Of a table, its columns of numbers."""
        source = open_source(X, self.n_jobs)
        if source.n != self._n_rows:
            raise InvalidInputError(f"X must have the {self._n_rows} rows of fit, in their order; it has {source.n}.")
        numbers, back = np.unique(self.representative_indices_, return_inverse=True)
        return source.run(TakeRows(numbers))["rows"][back]

    def _n_outliers_said(self) -> str:
        if "_passes" in self.__dict__:
            return f"certified gap {self._encoding_certificate.gap:.2g}"
        return f"{int(self.is_outlier_.sum())} outliers"
