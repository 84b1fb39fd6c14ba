# Everything sets itself up: a target makes .venv and installs from the lock files the first time,
# and again when a lock file or pyproject.toml has changed. No root, no Docker, no system packages.
#   PYTHON=python3.12 make test     another interpreter (3.11 or newer; `make clean` first)
#   make test ARGS="-k lease -x"    more arguments for pytest

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
AZURITE := .cache/azurite
ASSETS := .cache/assets
VENDOR := src/lateshift/dashboard/static/vendor
UV := $(shell command -v uv 2>/dev/null)
ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11 python3.14; do \
	"$$each" -c '$(ENOUGH)' 2>/dev/null && { echo "$$each"; break; }; done)
ARGS ?=
MINUTES ?= 60
CODE = $(wildcard src tests bench examples)

ifdef UV
INSTALL = $(UV) pip install --quiet --python $(BIN)/python
else
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

.PHONY: help run test test-brokers test-browser assets wheel check format bench crash simulate lives lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A store that is exported is somebody's own, and not the shop's.
run: $(VENV)/.core ## run the example shop on a SQLite file, with a live view and a dashboard; Ctrl-C stops it
	LATESHIFT_STORE=sqlite:///lateshift.db $(BIN)/lateshift up examples/shop.py

test: $(VENV)/.dev ## run all tests on SQLite and PostgreSQL, but those of real brokers (ARGS="-k lease" for some)
	@$(BIN)/python -m compileall -q src bench tests || true   # they start processes by the hundred: compiled once, not in each
	$(BIN)/python -m pytest -n 3 -q --ignore tests/brokers --ignore tests/browser $(ARGS)

test-browser: $(VENV)/.dev $(VENDOR)/.made ## the dashboard in Chromium, with axe and with a light and a dark look
	LATESHIFT_AXE=$(ASSETS)/node_modules/axe-core/axe.min.js $(BIN)/python -m pytest -q tests/browser $(ARGS)

assets: $(VENDOR)/.made ## fetch what the dashboard uses of others in the browser (needs npm); pages work without

wheel: $(VENV)/.dev $(VENDOR)/.made ## build the package, with the assets in it, into dist/
	$(BIN)/python -m hatchling build -t wheel

# One process: RabbitMQ and Redis are shared by all tests. LATESHIFT_BROKERS=all: what cannot be tested is an error, not a skip.
test-brokers: $(VENV)/.brokers $(AZURITE)/.made ## message and blob triggers on real servers: RabbitMQ, Redis, Azurite, moto
	LATESHIFT_BROKERS=all $(BIN)/python -m pytest -q tests/brokers $(ARGS)

check: $(VENV)/.dev ## formatter, linter, strict types, import rule
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports

format: $(VENV)/.dev ## format the code and mend what the linter can
	$(BIN)/ruff check --fix-only --quiet $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(VENV)/.dev $(VENV)/.bench ## measure both stores beside bare SQL and the peers, print one table
	$(BIN)/python -m bench $(ARGS)

crash: $(VENV)/.dev ## kill processes and servers for MINUTES=60, print what was lost
	$(BIN)/python -m tests.crash.soak --minutes $(MINUTES) $(ARGS)

simulate: $(VENV)/.dev ## ten years of 1,000 schedules and eight schedulers, every tick compared with an oracle
	$(BIN)/python -m tests.simulation.simulate $(ARGS)

lives: $(VENV)/.dev ## made-up workflows for MINUTES=60, killed at random, what they did compared with an oracle
	$(BIN)/python -m tests.workflows.lives --minutes $(MINUTES) $(ARGS)

lock: ## resolve the dependencies anew into requirements/*.txt (needs uv)
	@test -n "$(UV)" || { echo "make lock needs uv on the PATH: python3 -m pip install uv"; exit 1; }
	$(UV) lock --quiet --upgrade
	$(EXPORT) --group build --extra serve --output-file requirements/core.txt
	$(EXPORT) --group dev --output-file requirements/dev.txt
	$(EXPORT) --group build --group postgres --extra bench --output-file requirements/bench.txt
	$(EXPORT) --group dev --group brokers --extra brokers --extra files --extra blobs --output-file requirements/brokers.txt

EXPORT = $(UV) export --quiet --frozen --format requirements.txt --no-emit-project --no-header --no-annotate

clean: ## remove .venv, caches and what the build made
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# The four locks are cut from one resolution, so they can be laid over one another in one .venv.
$(VENV)/.core: requirements/core.txt
$(VENV)/.dev: requirements/dev.txt
$(VENV)/.bench: requirements/bench.txt
$(VENV)/.brokers: requirements/brokers.txt

$(VENV)/.core $(VENV)/.dev $(VENV)/.bench $(VENV)/.brokers: pyproject.toml | $(VENV)/.made
	@echo "Installing $(filter requirements/%,$^) into $(VENV)"
	@test -n "$(UV)" || $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@$(INSTALL) --require-hashes -r $(filter requirements/%,$^)
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# Azurite stands in for Azure Storage. Its lock has no addresses: it comes from the registry that npm is set up with.
$(AZURITE)/.made: tests/brokers/azurite/package.json tests/brokers/azurite/package-lock.json
	@command -v npm >/dev/null || { echo "Azurite needs node and npm, 20 or newer, on the PATH."; exit 1; }
	@echo "Installing Azurite into $(AZURITE)"
	@mkdir -p $(AZURITE) && cp $^ $(AZURITE)/
	@npm ci --prefix $(AZURITE) --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

$(VENDOR)/.made: assets/package.json assets/package-lock.json
	@command -v npm >/dev/null || { echo "The assets need node and npm, 20 or newer, on the PATH."; exit 1; }
	@echo "Fetching the dashboard's assets into $(VENDOR)"
	@mkdir -p $(ASSETS) $(VENDOR) && cp $^ $(ASSETS)/
	@npm ci --prefix $(ASSETS) --ignore-scripts --no-audit --no-fund --loglevel error
	@cd $(ASSETS)/node_modules && cp htmx.org/dist/htmx.min.js idiomorph/dist/idiomorph-ext.min.js $(CURDIR)/$(VENDOR)/ \
		&& for each in htmx.org idiomorph; do cp $$each/LICENSE $(CURDIR)/$(VENDOR)/$$each.LICENSE.txt; done
	@touch $@

$(VENV)/.made:
	@"$(PYTHON)" -c '$(ENOUGH)' 2>/dev/null || { \
		echo "Lateshift needs Python 3.11 or newer; '$(or $(PYTHON),python3)' is not." \
		"Install one, or name it: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Making $(VENV) with $$("$(PYTHON)" --version)"
	@$(if $(UV),$(UV) venv --quiet --clear --python "$$(command -v "$(PYTHON)")",rm -rf $(VENV) && "$(PYTHON)" -m venv) $(VENV)
	@touch $@
