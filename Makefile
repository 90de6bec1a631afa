# The folder eventstore/ is imported as ledgergraph.eventstore, and so on for the other four: see README.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types bench simulate chaos clean

help: ## What there is to make
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'
	@echo "  The folder eventstore/ is imported as ledgergraph.eventstore; likewise schemas, projections, consumers, producers."

$(RUNS): pyproject.toml infra/requirements/run.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: set PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: set PYTHON=/path/to/python3.11."; exit 1; }
	@echo "Making the environment in $(VENV) (half a minute, once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -r infra/requirements/run.txt
	@$(PIP) --no-deps --editable .
	@touch $@

$(READY): $(RUNS) infra/requirements/dev.txt
	@echo "Adding what tests need ..."
	@$(PIP) -r infra/requirements/dev.txt
	@touch $@

demo: $(RUNS) ## The main job from end to end: factor research on real prices (ARGS="--approve" for scripts)
	@$(BIN)/ledgergraph demo $(ARGS); code=$$?; [ $$code -ne 3 ] || { echo "In this clone: make demo ARGS=\"--approve --why '...'\", \
	or $(BIN)/ledgergraph in place of ledgergraph."; exit 0; }; exit $$code

test: $(READY) ## All tests, with a PostgreSQL of their own
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

check: $(READY) lint types ## What CI runs: lint, types, import contracts, tests
	$(BIN)/lint-imports infra/importlinter.ini
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

lint: $(READY) ## Lint
	$(BIN)/ruff check .

types: $(READY) ## mypy and pyright, both strict
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(READY) ## Measures beside LangGraph and eventsourcing; writes infra/bench/RESULTS.md
	$(BIN)/python infra/bench/run.py $(ARGS)

simulate: $(READY) ## A million random graphs and schedules (LEDGERGRAPH_SEED, LEDGERGRAPH_GRAPHS)
	LEDGERGRAPH_GRAPHS=$${LEDGERGRAPH_GRAPHS:-1000000} $(BIN)/python -m pytest -n $(WORKERS) tests/simulation/test_schedule.py -s

chaos: $(READY) ## kill -9 at 200 random moments, on SQLite and on PostgreSQL
	LEDGERGRAPH_KILLS=$${LEDGERGRAPH_KILLS:-200} $(BIN)/python -m pytest tests/e2e/test_kill.py -s

clean: ## Removes the environment and what tools left
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
