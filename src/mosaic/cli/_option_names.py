"""Words of the library, as those who type options know them."""

from __future__ import annotations

import re

from mosaic.cli._options import DETECTOR_SETTINGS, SETTINGS

#: Arguments of ``fit`` whose options are called otherwise.
OTHERWISE = {"sample_weight": "--weight", "groups": "--group"}
OPTIONS = {
    name: f"--{name.replace('_', '-')}" for name in (*SETTINGS, *DETECTOR_SETTINGS, "must_include", "exclude", "quotas")
} | OTHERWISE
_NAME = re.compile(rf"(?<![-\w'\"])({'|'.join(OPTIONS)})(?![-\w'\"])(=('[^']*'|[\w.+-]*\w))?")


def in_options(text: str) -> str:
    """A sentence of the library with options for its parameters.

    Names that are words, such as coverage, are taken for parameters at the beginning of a sentence and before a value.

    Examples
    --------
    >>> in_options("n_representatives=9 is too many for this coverage. Raise memory_budget, or use strategy='low-rank'.")
    '--n-representatives 9 is too many for this coverage. Raise --memory-budget, or use --strategy low-rank.'
    >>> in_options("coverage must be below 1.")
    '--coverage must be below 1.'
    """

    def as_option(found: re.Match[str]) -> str:
        name, equals, value = found.groups()
        if equals is None:
            return OPTIONS[name] if "_" in name or found.start() == 0 else name
        return f"{OPTIONS[name]} {value.strip(chr(39))}"

    return _NAME.sub(as_option, text)
