"""What a maintainer adds is named in few files: those that the table in CONTRIBUTING.md says."""

import ast
from pathlib import Path
from typing import get_args

import pytest

import mosaic
from mosaic.choosing import PICK_COLUMNS
from mosaic.cli.options import GROUPS
from mosaic.cli.parser import COMMANDS
from mosaic.parameters import KERNELS
from mosaic.program import SolverName
from mosaic.rows.open import KINDS

SOURCES = sorted(Path(mosaic.__file__).parent.rglob("*.py"))
#: All texts of each module, as its code has them.
TEXTS = {
    path: {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)} for path in SOURCES
}
#: What the library itself uses, wherever it is.
OWN = {"rbf", "linear", "auto", ".csv", ".parquet"}
FLAGS = {option.dest: " ".join(option.flags) for options in GROUPS.values() for option in options}


@pytest.mark.parametrize("name", sorted({*KERNELS, *get_args(SolverName), *KINDS, *FLAGS.values()} - OWN))
def test_a_kernel_a_solver_a_kind_of_file_and_an_option_are_named_in_at_most_three_files(name):
    named = [path.name for path in SOURCES if name in TEXTS[path]]
    assert len(named) <= 3, named


@pytest.mark.parametrize("name", PICK_COLUMNS)
def test_a_fact_of_a_pick_is_a_column_that_the_help_and_the_page_of_the_command_explain(name):
    assert f"_{name}" in COMMANDS["select"].about
    assert f"`mosaic_{name}`" in (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
