"""Files in and out: tables, arrays and pictures as they are on disk."""

from mosaic.io._faults import FileFault
from mosaic.io._rendered import csv_bytes
from mosaic.io._write import check_output, replacing, write_rows
from mosaic.io.opening import open_table
from mosaic.io.table import Table

__all__ = ["FileFault", "Table", "check_output", "csv_bytes", "open_table", "replacing", "write_rows"]
