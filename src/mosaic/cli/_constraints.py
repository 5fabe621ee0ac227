"""What is asked of single rows and of groups: refused before the work begins, in names and row numbers of the file."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mosaic.engines import is_source
from mosaic.exceptions import InvalidInputError

if TYPE_CHECKING:
    from mosaic.cli._fitting import Work


def check_options(args: Namespace) -> None:
    """Refuse options that mean nothing without another one."""
    for name, other, example in (("title", "report", "report.html"), ("quotas", "group", "COLUMN")):
        if getattr(args, name, None) is not None and getattr(args, other, example) is None:
            raise InvalidInputError(
                f"--{name} means nothing without --{other}. Add --{other} {example}, or leave it out."
            )


def check_kind(args: Namespace, table: Any) -> None:
    """Refuse options of images where there are none."""
    given = [name for name in ("image_size", "colour") if hasattr(args, name)]
    if given and not table.kind.startswith("images"):
        option = f"--{given[0].replace('_', '-')}"
        raise InvalidInputError(f"{option} is for folders and zips of images; {table.path} is none. Leave it out.")


def constraints_of(work: Work) -> dict[str, Any]:
    """Arguments of ``fit``, rows by their number among those that are compared."""
    args, table = work.args, work.table
    found: dict[str, Any] = {}
    if table.weights is not None:
        found["sample_weight"] = table.weights
    if table.groups is not None:
        found["groups"] = table.groups
    if getattr(args, "quotas", None) is not None:
        found["quotas"] = args.quotas
    for name in ("must_include", "exclude"):
        rows = getattr(args, name, None)
        if rows:  # each once, however often it is named
            found[name] = np.array(list(dict.fromkeys(table.find(row) for row in rows)), np.intp)
    _check_rows(work, found)
    return found


def _check_rows(work: Work, constraints: dict[str, Any]) -> None:
    """What the estimator would refuse in row numbers of its own, some of it after much work only."""
    must = constraints.get("must_include", np.zeros(0, np.intp))
    both = np.intersect1d(must, constraints.get("exclude", must[:0]))
    if len(both):
        raise InvalidInputError(
            f"{work.called(both[0])} is in --must-include and in --exclude. Take it out of one of the two."
        )
    k = getattr(work.args, "n_representatives", None)
    if isinstance(k, int) and len(must) > k:
        raise InvalidInputError(
            f"--must-include names {len(must)} rows, and -k asks for {k}. Name fewer or ask for more."
        )
    weights = constraints.get("sample_weight")
    without = must[:0] if weights is None else must[weights[must] == 0]
    if len(without):
        raise InvalidInputError(
            f"--must-include names {work.called(without[0])}, whose weight is 0. Give it a weight, or leave it out."
        )
    # Rows of a source are not at hand: using() has the names for what is found out later.
    X = work.table.X
    if len(must) > 1 and not is_source(X) and getattr(work.args, "kernel", None) != "precomputed":
        rows = X[must].toarray() if sp.issparse(X) else np.asarray(X[must])
        which, copies = np.unique(rows, axis=0, return_inverse=True, return_counts=True)[1:]
        if (copies > 1).any():
            one, other = must[which.ravel() == np.argmax(copies > 1)][:2]
            raise InvalidInputError(
                f"--must-include names {work.called(one)} and {work.called(other)}, which are equal. Name one of them."
            )
