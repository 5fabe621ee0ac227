"""Engines run passes over the rows: one machine, over memory or files, or a cluster. They contain no mathematics."""

from mosaic.engines.base import Source, Watch
from mosaic.engines.journal import Journal, check_checkpoint

__all__ = ["Journal", "Source", "Watch", "check_checkpoint"]
