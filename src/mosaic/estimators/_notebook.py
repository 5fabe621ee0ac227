"""How fitted estimators look in a notebook."""

from __future__ import annotations

from copy import copy
from typing import Any

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

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        # scikit-learn's diagram asks for all attributes. One of them is a proof that takes a program, or a pass over all rows.
        shown: Any = copy(self)
        if getattr(shown, "_certificate", self) is None:
            shown._certificate = NotAskedFor()
        return super(ShownInNotebooks, shown)._get_fitted_attr_html(doc_link)  # type: ignore[misc]


class NotAskedFor:
    """Stands where a proof would be."""

    def __repr__(self) -> str:
        return "proven when it is asked for"
