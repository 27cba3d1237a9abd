# Every target sets up what it needs: a machine with Python 3.11 to 3.14 and make is enough.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
PORT ?= 8350
# To collect all other tests, too, takes longer than many of these. No test of an engine may lie elsewhere.
ENGINE_TESTS := tests/engines tests/stores tests/queues tests/core/writing tests/toolsets/knowledge tests/toolsets/skills

.PHONY: help setup serve demo test test-engines conformance packaging site soak soak-engines check bench bench-engines eval eval-agent docs new-toolset lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(READY): requirements/dev.txt requirements/uv.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15) and "refdesk needs Python 3.11 to 3.14: make PYTHON=python3.14 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes --compile-bytecode requirements/dev.txt requirements/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

setup: $(READY) ## make the environment in .venv
	@echo 'The command is $(BIN)/refdesk, or refdesk after: source $(BIN)/activate'

serve: $(READY) ## run the server on http://127.0.0.1:8350 (MCP at /mcp, REST, pages)
	@echo 'In another terminal: source $(BIN)/activate, then refdesk --help'
	$(BIN)/refdesk serve --port $(PORT) --no-auth

demo: $(READY) ## a tour on a sample world: start its feed, sync it, search it
	$(BIN)/python -m sample_world.demo

test: $(READY) ## the tests
	$(BIN)/python -m pytest -n 3 -m "not soak and not engines" --durations 20

test-engines: .venv/.engines ## the same suites on Citus, PostgreSQL, Redis and Neo4j, and sign-in with Keycloak, installed and started for it
	REFDESK_TEST_ENGINES=citus $(BIN)/python -m pytest -n 2 -m "engines and not soak" -k citus --timeout 300 --durations 20 $(ENGINE_TESTS)
	REFDESK_TEST_ENGINES=postgres,redis,neo4j,keycloak $(BIN)/python -m pytest -n 2 -m "engines and not soak" --timeout 300 --durations 20 $(ENGINE_TESTS)

conformance: $(READY) ## the protocol's own suite and inspector against the server; installs them
	REFDESK_CONFORMANCE=1 $(BIN)/python -m pytest tests/protocol

packaging: .venv/.release ## the wheel in clean environments, and what it is shipped with; installs their checkers
	REFDESK_PACKAGING=1 $(BIN)/python -m pytest tests/packaging

site: .venv/.release ## the documentation as a site, in build/site
	.venv/release/bin/zensical build --strict

.venv/.release: $(READY) requirements/release.txt
	test -x .venv/release/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .venv/release
	$(BIN)/uv pip sync --quiet --python .venv/release/bin/python --require-hashes requirements/release.txt
	@touch $@

.venv/.engines: $(READY) requirements/engines.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/engines.txt
	tests/engines/install.sh
	$(BIN)/python -m tests.engines.neo4j
	$(BIN)/python -m tests.engines.keycloak
	@touch $@

soak: $(READY) ## the long forms of the tests; their counts into docs/benchmarks/reliability.md
	mkdir -p .benchmarks && rm -f .benchmarks/counts.jsonl
	REFDESK_SOAK=1 REFDESK_COUNTS=$(CURDIR)/.benchmarks/counts.jsonl $(BIN)/python -m pytest -m "not engines" --timeout 3600
	$(BIN)/python -m benchmarks.reliability .benchmarks/counts.jsonl --write

soak-engines: .venv/.engines ## the long forms on PostgreSQL, Citus, Redis and Neo4j; their counts into the same page
	mkdir -p .benchmarks && rm -f .benchmarks/engine-counts.jsonl
	REFDESK_SOAK=1 REFDESK_COUNTS=$(CURDIR)/.benchmarks/engine-counts.jsonl \
		REFDESK_TEST_ENGINES=postgres,citus,redis,neo4j,keycloak $(BIN)/python -m pytest -m "engines and soak" --timeout 3600
	$(BIN)/python -m benchmarks.reliability .benchmarks/engine-counts.jsonl --write

check: $(READY) ## format, lint, types, imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --warnings
	$(BIN)/lint-imports

bench: $(READY) ## speed, as ratios in one run, into docs/benchmarks/speed.md; ONLY="writes rest" runs these alone
	$(BIN)/python -m benchmarks.report speed $(if $(ONLY),--only $(ONLY))

bench-engines: .venv/.engines ## the engines beside plain SQL, into docs/benchmarks/engines.md; LONG=1 up to a million notes, ANEW=1 all anew
	$(if $(ONLY),,$(BIN)/python -m benchmarks.growth $(if $(LONG),--long) $(if $(ANEW),--anew))
	$(BIN)/python -m benchmarks.report engines $(if $(ONLY),--only $(ONLY))

eval: $(READY) ## retrieval quality, how good learned skills are, and how one list and the updates answer, into docs/benchmarks/quality.md
	$(BIN)/python -m benchmarks.report quality $(if $(ONLY),--only $(ONLY))

eval-agent: $(READY) ## how an agent gets on that knows only what the server says; MODEL=name, BASE_URL=… for a real one, EMULATED=1 for a try
	$(BIN)/python -m benchmarks.agent $(if $(MODEL),--model "$(MODEL)") $(if $(BASE_URL),--base-url "$(BASE_URL)") $(if $(EMULATED),--emulated)

docs: $(READY) ## the reference pages, contracts and snapshots anew, from the code
	REFDESK_UPDATE_SNAPSHOTS=1 $(BIN)/python -m pytest -q tests/meta/test_reference.py tests/server/test_table.py tests/toolsets/test_conformance.py

new-toolset: $(READY) ## a toolset's folder and tests to begin with: make new-toolset NAME=our-news
	$(BIN)/python -m tests.meta.new_toolset "$(NAME)"
	$(MAKE) --no-print-directory docs
	$(BIN)/ruff check --quiet --select I --fix src/refdesk/toolsets tests/toolsets
	$(BIN)/ruff format --quiet src/refdesk/toolsets tests/toolsets

lock: ## write the pinned requirement files anew
	$(BIN)/uv pip compile --quiet --universal --no-emit-index-url --generate-hashes --python-version 3.11 \
		--no-header pyproject.toml --group dev --all-extras -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --no-emit-index-url --generate-hashes --python-version 3.11 \
		--no-header --group engines -c requirements/dev.txt -o requirements/engines.txt
	$(BIN)/uv pip compile --quiet --universal --no-emit-index-url --generate-hashes --python-version 3.11 \
		--no-header --group build -o requirements/build.txt
	$(BIN)/uv pip compile --quiet --universal --no-emit-index-url --generate-hashes --python-version 3.11 \
		--no-header --group release -c requirements/dev.txt -o requirements/release.txt
	$(BIN)/uv pip compile --quiet --universal --no-emit-index-url --generate-hashes --python-version 3.11 \
		--no-header pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile --quiet --universal --no-emit-index-url --generate-hashes --python-version 3.11 \
		--no-header pyproject.toml --all-extras -c requirements/dev.txt -o requirements/server.txt

.PHONY: peers
peers: $(READY) ## beside other memory servers, which it installs; into docs/benchmarks/peers.md. FORM=small, PARTS="stores", SIZES=100000, CLIENTS=32
	$(BIN)/python -m benchmarks.peers --form $(or $(FORM),full) $(if $(PARTS),--parts $(PARTS)) \
		$(if $(SIZES),--sizes $(SIZES)) $(if $(CLIENTS),--clients $(CLIENTS)) --write

clean: ## remove what the targets made
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
