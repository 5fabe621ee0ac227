"""Data in and out: tables, arrays and pictures as they are on disk, and sources of rows that are read in passes."""

from mosaic.data.faults import FileFault
from mosaic.data.opening import open_table
from mosaic.data.sources import is_source, open_source
from mosaic.data.table import Table
from mosaic.data.writing import check_output, csv_bytes, replacing, write_rows

__all__ = [
    "FileFault",
    "Table",
    "check_output",
    "csv_bytes",
    "is_source",
    "open_source",
    "open_table",
    "replacing",
    "write_rows",
]
