# Every target sets up what it needs: a virtual environment in .venv, installed once and reused after.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "Vendimeter needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }

.PHONY: demo test lint format bench experiments clean

demo: .venv/.demo
	@$(BIN)/vendi demo

# A process a core, with one thread each. torchvision has no build for the CPU on the registry: it lies apart, for the tests that can do without its operators.
test: .venv/.ready
	OMP_NUM_THREADS=1 VENDIMETER_TEST_TORCHVISION=.venv/torchvision $(BIN)/python -m pytest --numprocesses auto --dist worksteal

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
	@$(CHECK_PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(INSTALL) torch==2.13.0
	@$(INSTALL) --editable '.[dev]'
	@$(INSTALL) --no-deps --upgrade --target .venv/torchvision torchvision timm torch-fidelity
	@touch $@ .venv/.demo

# The demo needs little: a newcomer should not wait for the developers' tools.
.venv/.demo: pyproject.toml constraints.txt
	@echo "Setting up .venv (once) …"
	@$(CHECK_PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(INSTALL) --editable '.[demo]'
	@touch $@

.venv/.bench: .venv/.ready
	@$(INSTALL) 'vendimeter[bench]'
	@touch $@

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
