"""Rows as a source that is read in passes, wherever they are."""

from mosaic.rows import Encoder, Rows


def open_source(X, n_jobs=None):
    rows = Rows.of(X)
    return Encoder.fit(rows).source(rows, n_jobs)
