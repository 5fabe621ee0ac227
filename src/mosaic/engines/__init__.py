"""Who runs a pass over the rows: one machine, over memory or files, or a cluster. No mathematics in here."""

from mosaic.engines.base import Source, Watch
from mosaic.engines.journal import Journal

__all__ = ["Journal", "Source", "Watch"]
