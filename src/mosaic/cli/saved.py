"""Saved models on the command line: reading them, and what they keep of the table that they were fitted to."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mosaic.cli.options import CONSTRAINTS, FILE_OPTIONS, SETTINGS
from mosaic.cli.session import MODEL_ENDING, Session, opened
from mosaic.estimators import load
from mosaic.exceptions import InvalidInputError
from mosaic.rows import Rows
from mosaic.rows.saved import SavedRows


def rows_of(model: Any, path: str) -> Rows:
    """The fitted rows as far as the model keeps them: names and some cells, or nothing but their numbers."""
    kept = getattr(model, "kept_rows_", None)
    if kept is None:
        names = getattr(model, "feature_names_in_", None)
        selection = model.selection_
        kept = SavedRows.bare(Path(path).name, selection.n_rows, model.n_features_in_, names)
    found: Rows = kept.as_rows()
    return found


@contextmanager
def opened_or_loaded(args: Namespace) -> Iterator[tuple[Session, Any]]:
    """The session, and the model that is fitted with the options, or the saved one if the file is a model."""
    if Path(args.file).suffix.lower() != MODEL_ENDING:
        with opened(args) as session:
            yield session, None
        return
    for name in (*SETTINGS, *FILE_OPTIONS, *CONSTRAINTS):
        if hasattr(args, name):
            fault = "means nothing for a saved model, which is fitted and knows its rows"
            raise InvalidInputError(fault, "Leave it out, or name the data instead of the model.", parameter=name)
    model = load(args.file)
    with opened(args, lambda bar: rows_of(model, args.file)) as session:
        yield session, model
