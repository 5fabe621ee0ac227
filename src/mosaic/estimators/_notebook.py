"""Display of fitted estimators in notebooks."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

#: Fitted attributes that are shown. Reading others may take time, since some of them solve a program.
SHOWN_ATTRIBUTES = (
    "representative_indices_",
    "n_representatives_",
    "outlier_threshold_",
    "threshold_rule_",
    "gamma_",
    "column_scale_",
)


class ShownInNotebooks:
    """A fitted estimator shows its result above scikit-learn's diagram."""

    def _html_repr(self) -> str:
        diagram = str(estimator_html_repr(self))
        try:
            check_is_fitted(self)
        except NotFittedError:
            return diagram
        from mosaic.show.card import (
            card,
        )  # imported here, because it imports the estimators, and only notebooks need it

        return card(self.facts_) + diagram  # type: ignore[attr-defined]

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        # scikit-learn's diagram reads all attributes, so it gets a copy with only those that are quick to read.
        kind = type(type(self).__name__, (), {"__doc__": type(self).__doc__, "__module__": type(self).__module__})
        stored: Any = kind()
        stored.__dict__.update({name: value for name, value in vars(self).items() if name.endswith("_")})
        if "selection_" in vars(self):
            stored.__dict__.update(
                {name: getattr(self, name) for name in SHOWN_ATTRIBUTES if hasattr(type(self), name)}
            )
        base: Any = super()
        return base._get_fitted_attr_html.__func__(stored, doc_link)
