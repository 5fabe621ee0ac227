"""Numbers of a small slice of the experiments are those that were measured before."""

from __future__ import annotations

import json

from experiments.check import EXPECTED, differences, measured


def test_a_small_slice_of_the_runs_gives_the_expected_numbers():
    assert differences(measured(), json.loads(EXPECTED.read_text())) == []


def test_a_number_that_has_moved_is_named():
    before = json.loads(EXPECTED.read_text())
    now = [dict(number) for number in before["numbers"]]
    assert differences(now, before) == []
    now[0]["value"] += 2 * before["tolerance"]
    assert len(differences(now, before)) == 1
    assert differences(now[1:], {**before, "numbers": before["numbers"][:-1]}) != []
