"""Engines run passes over the rows: one machine, over memory or files, or a cluster. They contain no mathematics."""

from mosaic.engines.base import Source, Watch
from mosaic.engines.journal import Journal

__all__ = ["Journal", "Source", "Watch"]
