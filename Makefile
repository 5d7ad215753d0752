# `make demo`, `make serve` and `make test` set everything up in .venv. Outside this folder, only the cache of models is written.

PYTHON ?= python3
VENV ?= .venv
# Which tests: all that need no FFmpeg and no GPU, and are not slow. .ci/run has these, too, and those with a microphone and a browser.
TESTS ?= not libass and not gpu and not slow
# Processes that share the tests out: two more than cores, since half of the time is waiting. Each takes 3 GB.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
# Where `make serve` listens: the first of these ports that is free. ARGS has further options, such as --record DIR.
PORT ?= 8000-8019
ARGS ?=
# What `make demo` plays, before what is said in Portuguese.
AUDIO ?= examples/audio/*.wav
# What is installed for the tests.
EXTRAS ?= dev
# What `make report` compares the working tree with.
BASE ?= HEAD
BIN := $(VENV)/bin

.PHONY: demo serve test test-fast report lint types docs pictures clean

demo: $(VENV)/.installed
	@for audio in $(AUDIO); do \
		echo; echo "== $$audio"; \
		$(BIN)/python -m pipeline.live $$audio --config demo || exit $$?; \
	done
	@echo; echo "== examples/audio-pt/lisbon.wav"
	@$(BIN)/python -m pipeline.live examples/audio-pt/lisbon.wav --config demo-pt-en

serve: $(VENV)/.installed-server
	@$(BIN)/python -m pipeline.serve --config demo --config demo-pt-en --config demo-zh-en --port $(PORT) $(ARGS)

# The types are checked beside the tests.
test: $(VENV)/.installed-dev lint
	@$(BIN)/mypy & types=$$!; status=0; \
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal -m "$(TESTS)" || status=$$?; \
	wait $$types || status=1; exit $$status

# What tests/fast.txt lists: no recognition, less than a minute.
test-fast: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal @tests/fast.txt

# What the working tree changes on real inputs, against a revision: make report BASE=main. INPUTS=names has some of them alone,
# AGAINST=build/report/new.json compares with an earlier report instead.
report: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.report $(BASE) $(INPUTS) $(if $(AGAINST),--against $(AGAINST))

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# The site in build/site. A broken link or anchor is an error.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The pictures in docs/, from the demo as it is. Needs a Chromium; quiet, since the demo runs at the speech's own pace.
pictures: $(VENV)/.installed-dev
	$(BIN)/python docs/picture.py examples/audio/travel.wav docs/terminal.svg
	$(BIN)/python -m docs.screenshots

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache

$(VENV)/.installed: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) was not found; install Python 3.11 or newer, or" \
		"name it, such as make $(MAKECMDGOALS) PYTHON=/opt/bin/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON) is" \
		"$$($(PYTHON) --version), but Python 3.11 or newer is needed; install one, and name it:" \
		"make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "installing into $(VENV), once: 770 MB, of which the speech model is 148 MB and the translators 46 MB" >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo]"
	@touch $@

$(VENV)/.installed-server: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo,server]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$(EXTRAS)]"
	@touch $@
