"""Files in and out: tables, arrays and pictures as they are on disk."""

from mosaic.data.faults import FileFault
from mosaic.data.opening import open_table
from mosaic.data.table import Table
from mosaic.data.writing import check_output, csv_bytes, replacing, write_rows

__all__ = ["FileFault", "Table", "check_output", "csv_bytes", "open_table", "replacing", "write_rows"]
