"""Rows as users have them, how they become numbers, and files in and out."""

from mosaic.rows.encoder import Encoder, columns
from mosaic.rows.faults import FileFault
from mosaic.rows.open import read
from mosaic.rows.rows import Rows
from mosaic.rows.write import check_output, csv_bytes, replacing, write_rows

__all__ = [
    "Encoder",
    "FileFault",
    "Rows",
    "check_output",
    "columns",
    "csv_bytes",
    "read",
    "replacing",
    "write_rows",
]
