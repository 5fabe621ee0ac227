"""Data in and out: tables, arrays and pictures as they are on disk, and sources of rows that are read in passes."""

from mosaic.rows.arrays import is_source, open_source
from mosaic.rows.faults import FileFault
from mosaic.rows.open import read
from mosaic.rows.rows import Rows
from mosaic.rows.write import check_output, csv_bytes, replacing, write_rows

__all__ = ["FileFault", "Rows", "check_output", "csv_bytes", "is_source", "open_source", "read", "replacing", "write_rows"]
