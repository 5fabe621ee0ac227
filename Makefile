# Every target sets up what it needs in .venv and does nothing twice.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# One BLAS thread per worker: small matrices, several workers, and timings that can be compared.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: setup demo test test-all lint format bench experiments experiments-all clean

setup: $(VENV)/.dev

$(VENV)/.user: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[cli]'
	touch $@

$(VENV)/.dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev]'
	touch $(VENV)/.user $@

$(VENV)/.all: $(VENV)/.dev
	$(PIP) --editable '.[dev,ray,spark]'
	touch $@

$(VENV)/.bench: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[bench]'
	touch $@

demo: $(VENV)/.user
	$(BIN)/mosaic demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-all: $(VENV)/.all  # drawn examples are new ones every time
	MOSAIC_EXAMPLES=random $(BIN)/python -m pytest -n auto --dist loadgroup -m ""

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/estimators.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/door.py

experiments: $(VENV)/.bench
	$(BIN)/python -m experiments.run --slice small --folder experiments/results/small
	$(BIN)/python -m experiments.paper.page --slice small --folder experiments/results/small --out experiments/results/small/results.md

experiments-all: $(VENV)/.bench
	$(BIN)/python -m experiments.run --slice all
	$(BIN)/python -m experiments.paper.page

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist
