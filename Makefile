# `make demo` shows what the package does; `make test` checks everything.
# Both work from a clean clone: the first one that needs it creates the virtual environment.

PYTHON ?= python3
VENV ?= .venv
VERSIONS = 3.11 3.12 3.13
COVERAGE_MIN = 97
PYTEST_ARGS ?=
BENCH_ARGS ?= --quick

BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# Other names are tried only when nobody has asked for a particular Python.
CANDIDATES = $(PYTHON) $(if $(filter file,$(origin PYTHON)),$(VERSIONS:%=python%))
SUITABLE = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

.PHONY: help install demo test lint typecheck coverage test-all $(VERSIONS:%=test-%) bench clean
.NOTPARALLEL:

help:
	@echo "make demo       overload a small app, with and without protection"
	@echo "make test       lint, types, tests, coverage of at least $(COVERAGE_MIN) %"
	@echo "make test-all   the same on each of Python $(VERSIONS) that is installed"
	@echo "make bench      cost a request, and a part of the overload benchmark"
	@echo "                (all of it, in some hours or piece by piece: BENCH_ARGS=--resume)"
	@echo "make lint | typecheck | coverage | install | clean"

install: $(STAMP)

$(STAMP): setup.cfg
	@python=; \
	for candidate in $(CANDIDATES); do \
		if "$$candidate" -c '$(SUITABLE)' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "Python 3.11 or later with venv and pip is needed; tried: $(CANDIDATES)." >&2; \
		echo "Name one with 'make PYTHON=/path/to/python3'" >&2; \
		echo "(on Debian and Ubuntu the package python3-venv brings what may be missing)." >&2; \
		exit 1; \
	fi; \
	echo "Installing into $(VENV) with $$("$$python" --version), which may take a minute"; \
	"$$python" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/python -m examples.demo

test: lint typecheck coverage

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(STAMP)
	$(BIN)/mypy

# Servers that tests start write data files of their own, hence `combine`.
coverage: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=$(COVERAGE_MIN)

test-all: $(VERSIONS:%=test-%)

$(VERSIONS:%=test-%): test-%:
	@python=; \
	for candidate in python$* "$$HOME"/.pyenv/versions/$*.*/bin/python$*; do \
		if "$$candidate" -c '$(SUITABLE)' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "python$*: not found, skipped"; \
	else \
		$(MAKE) test VENV=.venv-$* PYTHON="$$python"; \
	fi

bench: $(STAMP)
	$(BIN)/python -m benchmarks.fastpath
	$(BIN)/python -m benchmarks.overload $(BENCH_ARGS)

clean:
	rm -rf .venv .venv-* build dist *.egg-info .coverage .coverage.* htmlcov
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-*.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
