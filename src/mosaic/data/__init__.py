"""Files in and out: tables, arrays and pictures as they are on disk."""

from mosaic.data._faults import FileFault
from mosaic.data._rendered import csv_bytes
from mosaic.data._write import check_output, replacing, write_rows
from mosaic.data.opening import open_table
from mosaic.data.table import Table

__all__ = ["FileFault", "Table", "check_output", "csv_bytes", "open_table", "replacing", "write_rows"]
