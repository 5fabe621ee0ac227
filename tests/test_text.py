"""Sentences that state a bound never state more than is proven: their percentages are read back and compared with the numbers."""

import re
from decimal import Decimal

import numpy as np
import pytest

from mosaic import Certificate
from mosaic.text import at_least, at_most

PERCENT = r"(-?[\d,]+(?:\.\d+)?) %"


def share(text):
    """The share that a text in percent states, and that of a float, both by their digits."""
    if isinstance(text, str):
        return Decimal(re.fullmatch(PERCENT, text)[1].replace(",", "")) / 100
    return Decimal(repr(float(text)))


@pytest.mark.parametrize(
    ("number", "most", "least"),
    [
        (0, "0 %", "0 %"),
        (-0.0, "0 %", "0 %"),
        (4e-9, "0.001 %", "0 %"),
        (2.83e-5, "0.003 %", "0.002 %"),
        (0.0021, "0.21 %", "0.21 %"),
        (0.01, "1 %", "1 %"),
        (0.0541, "5.5 %", "5.4 %"),
        (0.0999, "10 %", "9.9 %"),
        (0.9999, "100 %", "99 %"),
        (1, "100 %", "100 %"),
        (np.float32(14.421), "1,443 %", "1,442 %"),
        (np.nan, "an unknown share", "an unknown share"),
        (np.inf, "an unknown share", "an unknown share"),
    ],
)
def test_upper_bounds_are_rounded_up_and_lower_bounds_down(number, most, least):
    assert (at_most(number), at_least(number)) == (most, least)


def test_no_rounding_goes_to_the_wrong_side_and_none_goes_far():
    rng = np.random.default_rng(0)
    numbers = [*(10.0 ** rng.uniform(-12, 6, 2000)), *(rng.integers(0, 2000, 500) / 1000)]
    for number in numbers:
        most, least = share(at_most(number)), share(at_least(number))
        assert least <= share(number) <= most
        assert most - least <= max(Decimal("0.1") * share(number), Decimal("0.00001"))


def drawn(rng):
    """The certificate of a program, with gaps of all sizes."""
    scale = 10.0 ** rng.uniform(-3, 6)
    dual = scale * rng.choice([rng.uniform(0, 1), 10.0 ** rng.uniform(-9, 0)])
    primal = dual * (1 + 10.0 ** rng.uniform(-12, 1))
    return Certificate(primal, dual, scale, 10.0 ** rng.uniform(-14, -1), 7, scale * 10.0 ** rng.uniform(-16, -5))


def test_sentences_never_state_more_than_is_proven():
    """Of two thousand certificates."""
    rng = np.random.default_rng(1)
    said = 0
    for _ in range(2000):
        program = drawn(rng)
        told = str(program)
        if within := re.search(f"within {PERCENT} of the (optimum|value)", told):
            proven = program.suboptimality if within[2] == "optimum" else program.gap
            assert share(f"{within[1]} %") >= share(proven), told
            said += 1
        assert "less than less" not in told
    assert said > 1500
