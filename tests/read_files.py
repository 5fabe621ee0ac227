"""What tests of files share."""

import pytest

from mosaic.rows import Encoder

#: So small a memory budget that every file is a large one.
TINY = 16
BUDGETS = pytest.mark.parametrize("budget", [None, TINY], ids=["small", "large"])


def numbers(table):
    """The numbers of all rows, also where they stay in a file."""
    return Encoder.fit(table).matrix(table)


def learned(table):
    """What the columns mean."""
    return Encoder.fit(table)


def told(table):
    """All that is said of the file and its columns."""
    return [*table.notes, *learned(table).describe()]


def write(folder, content, name="rows.csv"):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name
