"""The public surface: names come when they are asked for, and nothing heavy before."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from itertools import permutations
from pathlib import Path

import pytest

import mosaic


def test_every_public_name_is_there_and_no_other():
    assert all(getattr(mosaic, name) is not None for name in mosaic.__all__)
    assert dir(mosaic) == sorted([*mosaic.__all__, "__version__"])
    with pytest.raises(AttributeError, match="module 'mosaic' has no attribute 'MOSIAC'"):
        _ = mosaic.MOSIAC


def test_import_alone_brings_nothing_heavy():
    code = "import mosaic, mosaic.cli, sys; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_no_module_takes_private_names_of_another():
    """What one module takes from another has a name without an underscore, wherever the import stands."""
    taken = []
    for path in Path(mosaic.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mosaic"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                taken += [(path.name, name) for name in names if name.startswith("_") and not name.startswith("__")]
    assert taken == []


def test_packages_do_not_import_one_another_in_circles():
    """Within a layer, too. One import is drawn upwards: a fitted estimator draws its figures."""
    graph = pytest.importorskip("grimp").build_graph("mosaic", exclude_type_checking_imports=True)
    graph.remove_import(importer="mosaic.estimators.fitted", imported="mosaic.show.figures")
    packages, below = graph.find_children("mosaic"), TopologicalSorter()
    for one, other in permutations(packages, 2):
        if graph.direct_import_exists(importer=one, imported=other, as_packages=True):
            below.add(one, other)
    assert set(below.static_order()) <= set(packages)  # a circle would raise CycleError
