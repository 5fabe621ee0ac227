# Every target sets up what it needs in .venv and does nothing twice.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# One BLAS thread per worker: small matrices, several workers, and timings that can be compared.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: setup demo test test-all test-oldest lint format docs dist test-wheel licences lock audit bench fuzz experiments experiments-all clean

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
	$(PIP) --editable '.[dev,ray,spark,pyod,others,jobs]'
	touch $@

$(VENV)/.bench: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[bench]'
	touch $@

$(VENV)/.docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[docs]'
	touch $@

demo: $(VENV)/.user
	$(BIN)/mosaic demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-all: $(VENV)/.all  # drawn examples are new ones every time
	MOSAIC_EXAMPLES=random $(BIN)/python -m pytest -n auto --dist loadgroup -m ""

test-oldest:  # with the lowest versions that pyproject.toml allows, in an environment of its own
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/oldest.txt --editable '.[dev]'
	.venv-oldest/bin/python -m pytest -n auto --dist loadgroup

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs  # the site, in docs/_build
	$(BIN)/python docs/draw_architecture.py
	$(BIN)/python docs/count_visits.py --write
	$(BIN)/python docs/generate.py
	rm -rf docs/_build
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build
	$(BIN)/python docs/check_offline.py docs/_build

licences: $(VENV)/.dev  # what MOSAIC installs, and under which licence: docs/licences.md
	$(BIN)/python docs/list_licences.py

lock:  # the newest versions that work together, tried by the next run of CI: tests/tested.txt
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	(echo "# The versions that CI tests with. Written by: make lock"; .venv-lock/bin/python -m pip freeze --exclude-editable) > tests/tested.txt
	rm -rf .venv-lock

audit: $(VENV)/.dev  # known faults in the tested versions; asks the database of PyPI
	$(PIP) pip-audit
	$(BIN)/python -m pip_audit --requirement tests/tested.txt --no-deps --disable-pip

dist:  # what is uploaded for a release, built and checked
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

test-wheel:  # the wheel in dist/ in an environment of its own, by the tests of the sdist
	rm -rf .venv-wheel dist/unpacked
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[dev]"
	mkdir dist/unpacked
	tar -xzf dist/*.tar.gz -C dist/unpacked --strip-components 1
	cd dist/unpacked && ../../.venv-wheel/bin/python -c "import mosaic; assert 'site-packages' in mosaic.__file__"
	cd dist/unpacked && ../../.venv-wheel/bin/python -m pytest tests -n auto --dist loadgroup

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/many_picks.py --sizes 2000 6000 20000
	$(BIN)/python benchmarks/peers.py
	PYTHONPATH=. $(BIN)/python benchmarks/certificates.py
	$(BIN)/python benchmarks/estimators.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/door.py
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/next_batch.py
	$(BIN)/python benchmarks/weights.py
	$(BIN)/python benchmarks/errors.py
	$(BIN)/python benchmarks/drift.py
	$(BIN)/python benchmarks/copies.py
	$(BIN)/python benchmarks/check.py

FUZZ_MINUTES ?= 60
fuzz: $(VENV)/.dev  # a soak (about 5 minutes), then both fuzzers for FUZZ_MINUTES; new cases every day. What they find is in fuzz/found-*.jsonl
	$(BIN)/python fuzz/soak.py
	$(BIN)/python fuzz/fuzz_files.py --special
	$(BIN)/python fuzz/fuzz_files.py --kind .mosaic --start $$(date +%Y%j)00000 --cases 300 --out fuzz/found-models.jsonl
	$(BIN)/python fuzz/fuzz_engines.py --start $$(date +%Y%j)00000 --cases 300
	$(BIN)/python fuzz/fuzz_files.py --start $$(date +%Y%j)00000 --cases 99999 --seconds $$(($(FUZZ_MINUTES) * 30)) --out fuzz/found-files.jsonl
	$(BIN)/python fuzz/fuzz_api.py --start $$(date +%Y%j)00000 --cases 99999 --seconds $$(($(FUZZ_MINUTES) * 30)) --out fuzz/found-api.jsonl

experiments: $(VENV)/.bench
	$(BIN)/python -m experiments.run --slice small --folder experiments/results/small
	$(BIN)/python -m experiments.paper.page --slice small --folder experiments/results/small --out experiments/results/small/results.md

experiments-all: $(VENV)/.bench
	$(BIN)/python -m experiments.run --slice all
	$(BIN)/python -m experiments.paper.page --folder experiments/results --keep

clean:
	rm -rf $(VENV) .venv-oldest .venv-wheel docs/_build docs/_generated .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist
