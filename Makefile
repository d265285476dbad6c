# `make` alone lists the targets. Each target installs what it needs on first use.
# Recipes are bash scripts.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.NOTPARALLEL:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# `make test` runs the tests even if a check failed, and then fails. Other targets end with their first failure.
ifneq ($(filter test test-thorough check,$(MAKECMDGOALS)),)
MAKEFLAGS += --keep-going
endif

# If this is set, Python compiles the packages of .venv each time, which doubles the time of a command.
unexport PYTHONDONTWRITEBYTECODE

MATRIX ?=
SMOKE := experiments/smoke.yaml
# The newest run by its id, which begins with its start. A renamed run is not among them.
RUN ?= $(patsubst %/matrix.json,%,$(shell LC_ALL=C ls reports/[0-9]*/matrix.json 2>/dev/null | tail -n 1))
BASE ?=
ARGS ?=
BUDGET ?=
LANES ?=

# The word of $(2) that $(1) is most likely meant to be; empty if none is close.
nearest = $(shell python3 -c '$(NEAREST)' '$(1)' $(2) 2>/dev/null)
define NEAREST
import difflib, sys; words = {word.lower(): word for word in sys.argv[2:]}; print(*map(words.get, difflib.get_close_matches(sys.argv[1].lower(), words, 1)))
endef

# A misspelt variable would be ignored, and something else measured.
VARIABLES := MATRIX RUN BASE ARGS BUDGET LANES PYTHON
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name)))
UNKNOWN := $(firstword $(filter-out $(VARIABLES),$(GIVEN)))
ifneq ($(UNKNOWN),)
NEAR := $(call nearest,$(UNKNOWN),$(VARIABLES))
$(error headwind: no variable is called $(UNKNOWN)$(if $(NEAR), (did you mean $(NEAR)?)); there are: $(VARIABLES))
endif

# So would a variable that the target does not use.
UNUSED_lab-run := RUN BASE
UNUSED_lab-smoke := MATRIX RUN BASE BUDGET
UNUSED_lab-plan := RUN BASE
UNUSED_lab-resume := MATRIX BASE
UNUSED_lab-report := MATRIX BASE BUDGET LANES
UNUSED_lab-compare := MATRIX BUDGET LANES
UNUSED_lab-experiments := MATRIX RUN BASE
UNUSED := $(if $(word 2,$(MAKECMDGOALS)),,$(firstword $(filter $(UNUSED_$(MAKECMDGOALS)),$(GIVEN))))
ifneq ($(UNUSED),)
$(error headwind: $(MAKECMDGOALS) does not use $(UNUSED))
endif

PY := .venv/bin/python
RUNTIME := .venv/requirements.lock
DEV := .venv/requirements-dev.lock

# A file or folder as a goal would be "up to date", and the default matrix or run used instead.
TARGETS = $(RUNTIME) $(DEV) $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
PATHS := $(filter %.yaml %.yml,$(MAKECMDGOALS)) $(wildcard $(MAKECMDGOALS))
STRAY := $(if $(strip $(PATHS)),$(firstword $(filter-out $(TARGETS),$(PATHS))))
ifneq ($(STRAY),)
$(error headwind: name the $(if $(wildcard $(STRAY)/.),run as RUN,matrix as MATRIX)=$(STRAY))
endif

MISSPELT := $(firstword $(filter-out $(TARGETS),$(MAKECMDGOALS)))
ifneq ($(MISSPELT),)
MEANT := $(call nearest,$(MISSPELT),$(TARGETS))
$(if $(MEANT),$(error headwind: there is no target $(MISSPELT) (did you mean $(MEANT)?); make alone lists them))
endif

##@ The lab
.PHONY: lab-run lab-resume lab-smoke lab-experiments lab-plan lab-report lab-compare lab-doctor lab-down lab-sbom lab-faults
lab-run: docker $(RUNTIME) ## Run MATRIX=FILE (default: matrix.yaml) for up to BUDGET=TIME (default: as in the matrix), and write reports/<run-id>/report.html
	@exec $(PY) lab.py run $(if $(MATRIX),"$(MATRIX)") $(if $(BUDGET),--budget "$(BUDGET)") $(if $(LANES),--lanes "$(LANES)") $(ARGS)

A_RUN = test -n "$(RUN)" || { echo "headwind: reports/ holds no run yet; make lab-run makes one" >&2; exit 2; }

lab-resume: docker $(RUNTIME) ## Resume RUN=reports/<run-id> (default: the newest run) for up to BUDGET=TIME more (default: as in its matrix)
	@$(A_RUN)
	exec $(PY) lab.py run --resume "$(RUN)" $(if $(BUDGET),--budget "$(BUDGET)") $(if $(LANES),--lanes "$(LANES)") $(ARGS)

lab-smoke: docker $(RUNTIME) ## Check the installation: run experiments/smoke.yaml, a small matrix
	@exec $(PY) lab.py run $(SMOKE) $(ARGS)

lab-experiments: docker $(RUNTIME) ## Repeat experiments from published articles, and write one page of results; BUDGET=TIME limits the total time (default: each has the budget of its matrix)
	@exec $(PY) lab.py experiments $(if $(BUDGET),--budget "$(BUDGET)") $(if $(LANES),--lanes "$(LANES)") $(ARGS)

lab-run lab-smoke lab-experiments: with_images := yes # a fresh clone builds them while pip installs packages

lab-plan: $(RUNTIME) ## List the conditions of MATRIX= and forecast the time of a run with BUDGET=TIME (default: as in the matrix); start nothing
	@exec $(PY) lab.py plan $(if $(MATRIX),"$(MATRIX)") $(if $(BUDGET),--budget "$(BUDGET)") $(if $(LANES),--lanes "$(LANES)") $(ARGS)

lab-report: $(RUNTIME) ## Regenerate the report of RUN=reports/<run-id> (default: the newest run)
	@$(A_RUN)
	exec $(PY) lab.py report "$(RUN)" $(ARGS)

lab-compare: $(RUNTIME) ## Compare RUN=reports/<run-id> (default: the newest run) with the earlier run BASE=reports/<run-id>: which protocols became faster or slower relative to the others?
	@$(A_RUN)
	@test -n "$(BASE)" || { echo "headwind: name the earlier run: make lab-compare BASE=reports/<run-id>" >&2; exit 2; }
	exec $(PY) lab.py compare "$(BASE)" "$(RUN)" $(ARGS)

lab-doctor: $(RUNTIME) ## Check whether this machine can run Headwind, and print a fix for each problem
	@exec $(PY) lab.py doctor $(ARGS)

lab-down: $(RUNTIME) ## Remove Docker containers and networks left behind by earlier runs
	@exec $(PY) lab.py down $(ARGS)

lab-sbom: $(RUNTIME) docker ## Write the software bill of materials, sbom.cdx.json: all image packages and Python packages, with versions and licences
	@exec $(PY) lab.py sbom $(or $(ARGS),sbom.cdx.json)

lab-faults: $(DEV) docker ## Test Headwind itself: start runs, inject 200 faults at random moments, and print a table of lost results and leftover containers and networks
	@exec $(PY) bench/faults.py $(ARGS)

##@ The code
.PHONY: test test-thorough test-kernels check format lock
test: $(if $(ARGS),,begin-images) check pytest ## Install what the tests need, then run all checks and all tests

test-thorough: export HEADWIND_THOROUGH := yes # tests/sizes.py
test-thorough: test ## Like `make test`, but property tests try more cases, and simulations are longer

test-kernels: $(DEV) docker ## Run the acceptance suite and the matrices of the repository with netem in user-mode kernels 6.1, 6.12 and 7.2
	@$(PY) -m pytest --kernels tests/net/test_engine.py tests/net/test_old_kernels.py tests/net/test_kernels.py $(ARGS)

check: check-ruff check-mypy check-spelling check-yaml check-shell check-docker ## Run the linters and the type checker

format: $(DEV) ## Format the Python code
	@$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

lock: ## Pin the newest Python packages in requirements.lock and requirements-dev.lock (needs `uv`)
	@compile() { uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-emit-index-url \
	    --custom-compile-command "make lock" pyproject.toml "$$@" >/dev/null; }
	compile --output-file requirements.lock
	compile --group dev --constraint requirements.lock --output-file requirements-dev.lock

.PHONY: begin-images pytest check-ruff check-mypy check-spelling check-yaml check-shell check-docker
begin-images: docker # built in parallel with what comes before the tests, which wait for them (tests/net/builds.py)
	@$${PYTHON:-python3} -um tests.net.builds </dev/null 2>&1 | sed -u 's/^/build  | /' &

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
	@.venv/bin/shellcheck $$(grep -rIlE '^#!.*[/ ](ba)?sh( |$$)' .ci nginx servers client browsers impair)

check-docker: $(DEV)
	@.venv/bin/hadolint nginx/Dockerfile servers/*/Dockerfile client/Dockerfile browsers/*/Dockerfile impair/Dockerfile tests/net/old-kernel/Dockerfile

##@ Help
.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) }
	    /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
.DEFAULT_GOAL := help

# --- Prerequisites of targets ---------------------------------------------------------------------------------------

# $(call install,packages,reason): installs Debian packages, or prints the command if that is not possible.
define install
if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "headwind: $(2). On Debian or Ubuntu, run as root:  apt-get install $(1)" >&2
    exit 2
fi
echo "headwind: $(2); installing $(1)"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 $(1)
endef

# $(call pip_install,lock): installs a lock by hash, and shortens pip's output to one line per package.
# Packages are not compiled: Python does that on import, and the lab imports a third of them.
define pip_install
echo "headwind: installing the packages of $(1)"
$(PY) -m pip install --disable-pip-version-check --no-compile --require-hashes -r $(1) |
    sed -un 's/^Collecting \([^ ]*\).*/  \1/p'
cp $(1) .venv/
endef

# The copy of a lock in .venv records what is installed. Its text counts, not its date: a checkout changes dates.
# A virtual environment whose Python is gone (after a system upgrade) is created again.
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
	venv_package() { # python3-venv belongs to python3, which may be too old
	    for python in python3 python3.14 python3.13 python3.12 python3.11; do
	        if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi
	        if [ $$python = python3 ] && ! command -v python3 >/dev/null; then break; fi
	    done
	    echo $$python-venv
	}
	name_one="name one:  make PYTHON=/path/to/python3"
	if ! find_python && [ -z "$${PYTHON:-}" ]; then
	    package=$$(venv_package)
	    lacking="no Python 3.11 or newer with the venv module"
	    if [ $$package != python3-venv ]; then
	        lacking="$$lacking (python3 is $$(python3 --version 2>&1)); $$name_one"
	    fi
	    $(call install,$$package,$$lacking)
	fi
	if ! find_python; then
	    echo "headwind: $${PYTHON:-python3} is no Python 3.11 or newer with the venv module; $$name_one" >&2
	    exit 2
	fi
	$(if $(with_images),$$python -m headwind.testbed.images check)
	$(if $(with_images),$$python -m headwind.testbed.images & images=$$!; trap 'kill $$images 2>/dev/null || true' EXIT)
	echo "headwind: making .venv with $$($$python --version)"
	$$python -m venv --clear .venv
	$(call pip_install,$<)
	$(if $(with_images),wait $$images)

$(DEV): requirements-dev.lock $(RUNTIME)
	@if cmp -s $< $@; then touch $@; exit; fi
	$(call pip_install,$<)

# Either Compose works: `docker-compose` (version 1 or 2) or Docker's `compose`. Docker 29 refuses version 1, which is
# Ubuntu's docker-compose. Docker's own packages only have the plugin.
.PHONY: docker extras
docker:
	@missing=
	command -v docker >/dev/null || missing="docker.io"
	command -v docker-compose >/dev/null || docker compose version >/dev/null 2>&1 || missing="$$missing compose"
	if [ -z "$$missing" ]; then exit; fi
	if [ "$$(id -u)" = 0 ] && ! apt-cache show docker-compose >/dev/null 2>&1; then apt-get update -qq || true; fi
	compose=docker-compose
	for name in docker-compose-v2 docker-compose-plugin; do
	    if apt-cache show $$name >/dev/null 2>&1; then compose=$$name; break; fi
	done
	missing=$${missing/%compose/$$compose}
	$(call install,$$missing,Docker or Compose is missing)
	if docker info >/dev/null 2>&1 || ! service docker start; then exit; fi # lab.py reports what Docker lacks
	for second in {1..20}; do # a start script of System V does not wait for the daemon
	    if docker info >/dev/null 2>&1; then break; fi
	    sleep 1
	done

# Programs that only tests need. Tests without them are skipped, and report it.
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
