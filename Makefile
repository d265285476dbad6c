# `make` alone lists the targets. Everything that a target needs is installed by it on first use.
# Recipes are bash scripts. With --keep-going `make test` runs the tests although a check failed, and then fails.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.NOTPARALLEL:
.SUFFIXES:
MAKEFLAGS += --keep-going --no-builtin-rules --no-print-directory

MATRIX ?=
SMOKE := experiments/smoke.yaml
RUN ?= $(shell ls -d reports/*/ 2>/dev/null | sort | tail -n 1)
BASE ?=
ARGS ?=
BUDGET ?=
LANES ?=

# A misspelt variable would be ignored, and something else measured.
VARIABLES := MATRIX RUN BASE ARGS BUDGET LANES PYTHON
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
UNKNOWN := $(firstword $(filter-out $(VARIABLES),$(GIVEN)))
ifneq ($(UNKNOWN),)
NEAR := import difflib, sys; print(*difflib.get_close_matches(sys.argv[1].upper(), sys.argv[2:], 1))
NEAR := $(shell python3 -c '$(NEAR)' '$(UNKNOWN)' $(VARIABLES) 2>/dev/null)
$(error headwind: no variable is called $(UNKNOWN)$(if $(NEAR), (did you mean $(NEAR)?)); there are: $(VARIABLES))
endif

PY := .venv/bin/python
RUNTIME := .venv/requirements.lock
DEV := .venv/requirements-dev.lock

##@ The lab
.PHONY: lab-run lab-resume lab-smoke lab-experiments lab-plan lab-report lab-compare lab-doctor lab-down
lab-run: docker $(RUNTIME) ## Measure MATRIX=matrix.yaml, for at most BUDGET=2h, and write reports/<run-id>/report.html
	@exec $(PY) lab.py run $(if $(MATRIX),"$(MATRIX)") $(if $(BUDGET),--budget $(BUDGET)) $(if $(LANES),--lanes $(LANES)) $(ARGS)

lab-resume: docker $(RUNTIME) ## Go on with RUN=reports/<run-id> (without RUN: the newest run), for BUDGET=2h from now on
	@test -n "$(RUN)" || { echo "headwind: reports/ holds no run yet; make lab-run makes one" >&2; exit 2; }
	exec $(PY) lab.py run --resume "$(RUN)" $(if $(BUDGET),--budget $(BUDGET)) $(if $(LANES),--lanes $(LANES)) $(ARGS)

lab-smoke: docker $(RUNTIME) ## The same with a small matrix: is everything in order?
	@exec $(PY) lab.py run $(SMOKE) $(ARGS)

lab-experiments: docker $(RUNTIME) ## Measure what articles published, all of experiments/, within BUDGET=4h: one page over all
	@exec $(PY) lab.py experiments $(if $(BUDGET),--budget $(BUDGET)) $(if $(LANES),--lanes $(LANES)) $(ARGS)

lab-run lab-smoke lab-experiments: with_images := yes # a fresh clone builds them while pip installs packages

lab-plan: $(RUNTIME) ## Say what MATRIX would run within BUDGET=2h, and for how long; starts nothing
	@exec $(PY) lab.py plan $(if $(MATRIX),"$(MATRIX)") $(if $(BUDGET),--budget $(BUDGET)) $(if $(LANES),--lanes $(LANES)) $(ARGS)

lab-report: $(RUNTIME) ## Draw the report of RUN=reports/<run-id> again (without RUN: of the newest run)
	@test -n "$(RUN)" || { echo "headwind: reports/ holds no run yet; make lab-run makes one" >&2; exit 2; }
	exec $(PY) lab.py report "$(RUN)" $(ARGS)

lab-compare: $(RUNTIME) ## Say which protocols got worse from BASE=reports/<run-id> to RUN (without RUN: the newest run)
	@test -n "$(BASE)" -a -n "$(RUN)" || { echo "headwind: name the earlier run: make lab-compare BASE=reports/<run-id>" >&2; exit 2; }
	exec $(PY) lab.py compare "$(BASE)" "$(RUN)" $(ARGS)

lab-doctor: $(RUNTIME) ## Check what this machine can do, with the command that fixes each finding
	@exec $(PY) lab.py doctor $(ARGS)

lab-down: $(RUNTIME) ## Remove every container and network that an earlier run left
	@exec $(PY) lab.py down $(ARGS)

##@ The code
.PHONY: test test-thorough test-kernels check format lock
test: check pytest ## Install what tests need, then run all checks and all tests

test-thorough: export HEADWIND_THOROUGH := yes # tests/sizes.py
test-thorough: test ## The same with property tests and simulations at their full size

test-kernels: $(DEV) docker ## With Linux 6.1, 6.12 and 7.2 in the router: the acceptance suite, and the lab's matrices
	@$(PY) -m pytest --kernels tests/net/test_engine.py tests/net/test_old_kernels.py tests/net/test_kernels.py $(ARGS)

check: check-ruff check-mypy check-spelling check-yaml check-shell check-docker ## Run the linters and the type checker

format: $(DEV) ## Rewrite the Python code in the project's style
	@$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

lock: ## Choose the newest versions again (needs `uv`): requirements.lock, requirements-dev.lock
	@compile() { uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-emit-index-url \
	    --custom-compile-command "make lock" pyproject.toml "$$@" >/dev/null; }
	compile --output-file requirements.lock
	compile --group dev --constraint requirements.lock --output-file requirements-dev.lock

.PHONY: pytest check-ruff check-mypy check-spelling check-yaml check-shell check-docker
pytest: $(DEV) docker extras
	@exec $(PY) -m tests.rings $(ARGS)

check-ruff: $(DEV)
	@$(PY) -m ruff check --quiet .
	$(PY) -m ruff format --check --quiet . || { echo "headwind: run make format" >&2; exit 1; }

check-mypy: $(DEV)
	@$(PY) -m mypy

check-spelling: $(DEV)
	@$(PY) -m codespell_lib

check-yaml: $(DEV)
	@$(PY) -m yamllint --strict .

check-shell: $(DEV)
	@.venv/bin/shellcheck $$(grep -rIlE '^#!.*[/ ](ba)?sh( |$$)' .ci nginx client impair)

check-docker: $(DEV)
	@.venv/bin/hadolint nginx/Dockerfile client/Dockerfile impair/Dockerfile tests/net/old-kernel/Dockerfile

##@ Help
.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) }
	    /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
.DEFAULT_GOAL := help

# --- What the targets stand on --------------------------------------------------------------------------------------

# $(call install,packages,reason): Debian packages, installed where that is possible, else the command to do it.
define install
if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "headwind: $(2). On Debian or Ubuntu, run as root:  apt-get install $(1)" >&2
    exit 2
fi
echo "headwind: $(2); installing $(1)"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 $(1)
endef

# $(call pip_install,lock): what the lock names, by hash; pip's long report shortened to one line for each package.
# Nothing is compiled: Python does that on import, and the lab imports a third of it.
define pip_install
echo "headwind: installing the packages of $(1)"
$(PY) -m pip install --disable-pip-version-check --no-compile --require-hashes -r $(1) |
    sed -un 's/^Collecting \([^ ]*\).*/  \1/p'
cp $(1) .venv/
endef

# The copy of a lock inside .venv says what is installed there. Its text counts, not its date: a checkout changes dates.
# A virtual environment whose Python is gone (an upgrade of the system) is made anew.
ifeq ($(realpath $(PY)),)
.PHONY: $(RUNTIME)
endif
$(RUNTIME): requirements.lock
	@if [ -x $(PY) ] && cmp -s $< $@; then touch $@; exit; fi
	find_python() {
	    for python in $${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
	        if $$python -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then return; fi
	    done
	    return 1
	}
	if ! find_python && [ -z "$${PYTHON:-}" ]; then
	    $(call install,python3-venv,no Python 3.11 or newer with the venv module)
	fi
	if ! find_python; then
	    echo "headwind: $$python is no Python 3.11 or newer with venv; name one:  make PYTHON=/path/to/python3" >&2
	    exit 2
	fi
	$(if $(with_images),$$python -m headwind.testbed.images & images=$$!; trap 'kill $$images 2>/dev/null || true' EXIT)
	echo "headwind: making .venv with $$($$python --version)"
	$$python -m venv --clear .venv
	$(call pip_install,$<)
	$(if $(with_images),wait $$images)

$(DEV): requirements-dev.lock $(RUNTIME)
	@if cmp -s $< $@; then touch $@; exit; fi
	$(call pip_install,$<)

# Either Compose will do: `docker-compose` (version 1 or 2) or Docker's own `compose`.
.PHONY: docker extras
docker:
	@missing=
	command -v docker >/dev/null || missing="docker.io"
	command -v docker-compose >/dev/null || docker compose version >/dev/null 2>&1 || missing="$$missing docker-compose"
	if [ -z "$$missing" ]; then exit; fi
	$(call install,$$missing,Docker or Compose is missing)
	docker info >/dev/null 2>&1 || service docker start || true # where that fails, lab.py says what Docker lacks

# What tests alone need. Where it cannot be installed they are skipped, and say so.
extras:
	@missing=
	command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null || missing="chromium"
	command -v ethtool >/dev/null || missing="$$missing ethtool"
	if [ -z "$$missing" ]; then exit; fi
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	    $(call install,$$missing,tests look at the report in a browser and at interfaces with ethtool)
	else
	    echo "headwind: some tests will be skipped; on Debian or Ubuntu, run as root:  apt-get install $$missing"
	fi
