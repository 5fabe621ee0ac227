"""How fitted estimators look in a notebook."""

from __future__ import annotations

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted


class ShownInNotebooks:
    """A fitted estimator shows what it has found above scikit-learn's diagram of its parameters."""

    def _html_repr(self) -> str:
        try:
            check_is_fitted(self)
        except NotFittedError:
            return str(estimator_html_repr(self))
        # The one import upwards: drawing is above, and only a notebook asks for it.
        from mosaic.inspection import card

        # scikit-learn's diagram asks a fitted estimator for all attributes. One of them is a proof that takes a program, or a
        # pass over all rows: unless it is there already, parameters alone are shown.
        proven = getattr(self, "_certificate", self) is not None
        return card(self) + str(estimator_html_repr(self if proven else clone(self)))
