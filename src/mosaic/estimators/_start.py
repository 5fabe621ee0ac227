"""Where the picks of an earlier fit are among new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mosaic.arrays.codes import row_codes
from mosaic.choosing import Selection
from mosaic.estimators._reading import NamedRows, read_rows
from mosaic.exceptions import InvalidInputError
from mosaic.kernels import PointKernel
from mosaic.rows import Rows
from mosaic.rows.naming import as_rows

#: What to do where picks cannot be found.
GIVE_ROWS = "Give the row numbers of the earlier picks: `start=[…]`."


def found_again(start: Any, X: Any, read: NamedRows | None) -> dict[str, Any]:
    """The arguments of ``Constraints.read`` for earlier picks: their rows in X, and those that are gone.

    Parameters
    ----------
    start : a fitted selector, or rows of X by number or name
    X, read : the data of the new fit, and what was read of it

    Notes
    -----
    1. The picks of a model are found by their names where the rows of both fits have names, else by their values: the rows of X
       are prepared as in the earlier fit and compared with its picks.
    """
    if not hasattr(start, "representative_indices_") and not hasattr(start, "get_params"):
        return {"start": as_rows(start, None if read is None else read.row_names, "start")}
    check_is_fitted(start)
    selection = getattr(start, "selection_", None)
    if not isinstance(selection, Selection) or not len(selection.rows):
        fault = f"must be a fitted MOSAIC or MOSAICSampler, or rows; got {type(start).__name__}"
        raise InvalidInputError(fault, "Leave it out to choose anew.", parameter="start")
    material, old = selection.material, selection.rows.tolist()
    names = None if read is None else read.names_of_rows()
    if material.row_names is not None and names is not None:
        place = {name: row for row, name in reversed(list(enumerate(names.names)))}  # of equal names the first
        rows = [place.get(material.row_names[row], -1) for row in old]
    else:
        rows = _by_values(start, selection, X)
    gone = tuple(material.called(row) for row, new in zip(old, rows, strict=True) if new < 0)
    return {"start": np.array([row for row in rows if row >= 0], np.intp), "gone": gone}


def _by_values(start: Any, selection: Selection, X: Any) -> list[int]:
    """The first row of X that is equal to each pick, -1 where none is."""
    kernel = selection.chosen_kernel
    if not isinstance(kernel, PointKernel):
        fault = "is a model whose picks cannot be found by their values, since it was given similarities"
        raise InvalidInputError(fault, GIVE_ROWS, parameter="start")
    if isinstance(X, Rows) and X.encoder is not None:
        fault = "is a model whose picks cannot be found in an open table without ids"
        raise InvalidInputError(fault, f"Pass the path of the file. {GIVE_ROWS}", parameter="start")
    Y = selection.material.geometry.prepare(read_rows(start, X, reset=False))
    if sp.issparse(Y) != sp.issparse(kernel.X):
        fault = "is a model of sparse rows, and X is not sparse, or the other way round"
        raise InvalidInputError(fault, "Pass rows of the same kind.", parameter="start")
    codes, rows = np.unique(row_codes(Y.astype(kernel.X.dtype, copy=False)), return_index=True)
    wanted = row_codes(kernel.X)
    places = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return [int(row) if same else -1 for row, same in zip(rows[places], codes[places] == wanted, strict=True)]
