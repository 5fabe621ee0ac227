"""Engines run passes over the rows: one machine, over memory or files, or a cluster. They contain no mathematics."""

from mosaic.engines.base import Passes, Source, Watch

__all__ = ["Passes", "Source", "Watch"]
