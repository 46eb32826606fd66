# Every target sets up what it needs: a virtual environment in .venv, installed once and reused after.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint format bench experiments clean

demo: .venv/.ready
	@$(BIN)/vendi demo

test: .venv/.ready
	$(BIN)/python -m pytest

lint: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: .venv/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.bench
	$(BIN)/python benchmarks/run.py

experiments: .venv/.ready
	$(BIN)/python experiments/figure1.py
	$(BIN)/python experiments/figure2.py

.venv/.ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (once) …"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Vendimeter needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

.venv/.bench: .venv/.ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt 'vendimeter[bench]'
	@touch $@

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
