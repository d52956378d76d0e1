# make lab opens the explorer, make app shows it as a page of its own, make test runs every test; each first sets up
# .venv, once, from pyproject.toml.
# Another interpreter: make PYTHON=python3.13 test. More for JupyterLab: make lab LAB="--ip=0.0.0.0 --port=9999".
# More for the page: make app APP=--port=9999.

VENV := .venv
BIN := $(VENV)/bin/python
UV := $(shell command -v uv)
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
ROOT_USER := $(if $(filter 0,$(shell id -u)),--allow-root --no-browser)
EXPLORER := notebooks/04-explore.ipynb

.PHONY: lab app test lint bench
.DELETE_ON_ERROR:

lab: $(VENV)/lab.stamp
	$(BIN) -m jupyterlab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/$(EXPLORER) $(ROOT_USER) $(LAB)

app: $(VENV)/app.stamp
	$(BIN) -m voila $(EXPLORER) $(if $(filter 0,$(shell id -u)),--no-browser) $(APP)

test: lint
	$(BIN) -m pytest

lint: $(VENV)/test.stamp
	$(BIN) -m ruff check
	$(BIN) -m ruff format --check
	$(BIN) -m mypy

bench: $(VENV)/bench.stamp
	$(BIN) -m benchmarks

$(VENV)/lab.stamp: pyproject.toml | $(BIN)
	@echo "Installing JupyterLab and budgetkit into $(VENV), once: half a minute, or minutes where the network is slow."
	$(INSTALL) --editable '.[lab]'
	@touch $@

$(VENV)/app.stamp: pyproject.toml | $(BIN)
	@echo "Installing voila and budgetkit into $(VENV), once."
	$(INSTALL) --editable '.[app]'
	@touch $@ $(VENV)/lab.stamp

$(VENV)/test.stamp: pyproject.toml | $(BIN)
	@echo "Installing budgetkit and what its tests need into $(VENV), once: a minute, or minutes where the network is slow."
	$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/lab.stamp

$(VENV)/bench.stamp: $(VENV)/test.stamp
	@echo "Installing the libraries that budgetkit is compared with into $(VENV), once."
	$(INSTALL) --editable '.[dev,peers]'
	@touch $@

ifneq ($(UV),)

INSTALL := uv pip install --quiet --python $(BIN)

$(BIN):
	rm -rf $(VENV)
	uv venv --quiet --seed --python $(or $(PYTHON),'>=3.11') $(VENV)

else

INSTALL := $(BIN) -m pip install --quiet --disable-pip-version-check

# A Python without ensurepip (Debian's, without python3-venv) cannot put pip into the environment; its own pip can.
$(BIN):
	@test -n "$(PYTHON)" || { echo "budgetkit needs Python 3.11 or newer and found none;" \
		"install one, or name it: make PYTHON=/path/to/python"; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -c 'import ensurepip' 2>/dev/null && $(PYTHON) -m venv $(VENV) || \
		{ $(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $(BIN) install --quiet --disable-pip-version-check pip; }

endif
