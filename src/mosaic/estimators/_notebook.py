"""How fitted estimators look in a notebook."""

from __future__ import annotations

from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted


class ShownInNotebooks:
    """A fitted estimator shows what it has found above scikit-learn's diagram."""

    def _html_repr(self) -> str:
        diagram = str(estimator_html_repr(self))
        try:
            check_is_fitted(self)
        except NotFittedError:
            return diagram
        # The one import upwards: drawing is above, and only a notebook asks for it.
        from mosaic.inspection import card

        return card(self) + diagram
