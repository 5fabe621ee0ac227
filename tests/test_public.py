"""The public surface: names come when they are asked for, and nothing heavy before."""

from __future__ import annotations

import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mosaic


def test_every_public_name_is_there():
    for name in mosaic.__all__:
        assert getattr(mosaic, name) is not None
        assert name in dir(mosaic)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'mosaic' has no attribute 'MOSIAC'"):
        _ = mosaic.MOSIAC


def test_import_alone_brings_nothing_heavy():
    told = subprocess.run(
        [sys.executable, "-c", "import mosaic, mosaic.cli, sys; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "[]"


def test_packages_import_public_modules_of_one_another_only():
    """What one package takes from another has a name without an underscore; _arrays, _frames and _files are for all."""
    root = Path(mosaic.__file__).parent
    reached = []
    for path in root.rglob("*.py"):
        package = path.relative_to(root).parts[0]
        for target, module in re.findall(r"from mosaic\.(\w+)\.(_\w+) import", path.read_text(encoding="utf-8")):
            if target != package:
                reached.append(f"{path.relative_to(root)} takes from mosaic.{target}.{module}")
    assert not reached


def test_packages_do_not_import_one_another_in_circles():
    """Within a layer, too. One import is drawn upwards: a fitted estimator draws its figures."""
    graph = pytest.importorskip("grimp").build_graph("mosaic", exclude_type_checking_imports=True)
    graph.remove_import(importer="mosaic.estimators.fitted", imported="mosaic.show.figures")
    packages = sorted(graph.find_children("mosaic"))
    below = {
        package: {
            other
            for other in packages
            if other != package and graph.direct_import_exists(importer=package, imported=other, as_packages=True)
        }
        for package in packages
    }

    assert set(TopologicalSorter(below).static_order()) == set(packages)  # a circle would raise CycleError


def test_dir_shows_public_names_only():
    assert dir(mosaic) == sorted([*mosaic.__all__, "__version__"])
