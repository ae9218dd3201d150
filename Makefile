# Every target that people and CI use. `make help` prints this list.
PYTHON ?= python3
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE ?= 1

COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --system-certs \
	--no-config --no-emit-index-url --no-emit-find-links --no-header --quiet

.DEFAULT_GOAL := help
# The first commit whose workers pass over settings of a workspace that only a newer release knows.
FIRST_UPGRADABLE := 76e884121919c635937be058f78e540794f6e81a

.PHONY: help setup demo dev images images-run test test-age test-images test-upgrade chaos fuzz check format lint types imports audit licences bench-graph bench-ingest bench-fairness bench-fence bench-lazy bench-query bench-scale-out bench-storage bench-tenants bench-vectors eval eval-duplicates eval-quick eval-routing eval-themes eval-theme-questions migrate lock clean

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

setup: ## create .venv from the hashed lock (quick when nothing changed)
	@$(PYTHON) deploy/setup_venv.py

demo: setup ## run the whole product once on small documents, from upload to deletion, and stop
	@$(BIN)/trellis demo

dev: setup ## run the whole stack in the foreground; data is kept between runs (ARGS="--port 8001")
	@$(BIN)/trellis dev $(ARGS)

images: setup ## build the images of docker-compose.yml with podman, without a registry (ARGS="--base debian:13-slim")
	@$(BIN)/python -m deploy.build_images $(ARGS)

images-run: setup ## start docker-compose.yml from these images, run the demo against it, and stop it (ARGS=--keep)
	@$(BIN)/python -m deploy.run_images $(ARGS)

# Where the images cannot be built the reason is printed.
test-images: setup ## build the images and run them
	@$(BIN)/python -m deploy.build_images && $(BIN)/python -m deploy.run_images; code=$$?; \
		if [ $$code = 3 ]; then echo "[images] the test of the images is SKIPPED"; else exit $$code; fi

test: setup ## run all tests against real servers
	@$(BIN)/python -m pytest -n 2 --dist loadscope $(ARGS)

# Debian's packages are unpacked into a folder of ours, once; where that cannot be done the reason is printed.
test-age: setup ## run the tests of the AGE graph store, on a Postgres with AGE that is prepared first
	@$(BIN)/python deploy/prepare_age.py; code=$$?; if [ $$code = 3 ]; then echo "[age] the tests of the AGE graph store are SKIPPED"; \
		elif [ $$code != 0 ]; then exit $$code; else TRELLIS_TEST_GRAPH_STORE=age $(BIN)/python -m pytest -n 2 --dist loadscope -m age $(ARGS); fi

test-upgrade: setup ## let the worker of an earlier release work on this one's schema (PREVIOUS=commit)
	@TRELLIS_PREVIOUS_RELEASE=$(or $(PREVIOUS),$(FIRST_UPGRADABLE)) $(BIN)/python -m pytest -q -rs tests/operations/test_previous_release.py

chaos: setup ## hurt a whole installation and compare it with one left in peace (SEED= DOCUMENTS=200 WORKSPACES=10 WORKERS=3 FAULTS=)
	@$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED)) $(if $(DOCUMENTS),--documents $(DOCUMENTS)) \
		$(if $(WORKSPACES),--workspaces $(WORKSPACES)) $(if $(WORKERS),--workers $(WORKERS)) $(if $(FAULTS),--faults $(FAULTS))

fuzz: setup ## damaged files and generated requests, many more of them than in the tests (EXAMPLES=120 SEED=random)
	@TRELLIS_FUZZ=$(or $(EXAMPLES),120) TRELLIS_FUZZ_SEED=$(or $(SEED),$$$$) $(BIN)/python -m pytest -q -p no:randomly --timeout 3600 \
		tests/parsing/test_hostile.py tests/api/test_generated_requests.py

check: setup format lint types imports audit licences ## run every check that is not a test of behaviour

format: setup ## check the formatting (write it: .venv/bin/ruff format .)
	@$(BIN)/ruff format --check .

lint: setup ## check the code style
	@$(BIN)/ruff check .

types: setup ## check the types
	@$(BIN)/mypy

imports: setup ## check the layers and the architecture rules
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q -p no:randomly tests/architecture $(ARGS)

audit: setup ## look for known vulnerabilities in the locked packages
	@$(BIN)/python deploy/audit.py

licences: setup ## list the licences of the locked packages and refuse unexpected ones
	@$(BIN)/python deploy/licences.py

bench-graph: setup ## both graph stores side by side, on a Postgres with AGE that is prepared first (SIZES=1000,20000 WRITE=1)
	@$(BIN)/python deploy/prepare_age.py && $(BIN)/python -m bench.graph_stores $(if $(SIZES),--sizes $(SIZES)) \
		$(if $(WRITE),--write docs/bench-graph.md)

bench-ingest: setup ## ingest beside LightRAG's own server (DATA= ROWS=a,b,c ROUNDS=1 GROW=1 WRITE=1)
	@$(BIN)/python -m bench.sidebyside.ingest $(if $(DATA),--data "$(DATA)") $(if $(ROWS),--rows $(ROWS)) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(GROW),--grow) $(if $(WRITE),--write docs/bench-ingest.md)

bench-fairness: setup ## one tenant's document beside another's backlog, and on an idle installation (BACKLOG=n)
	@$(BIN)/python -m bench.fairness $(if $(BACKLOG),--backlog $(BACKLOG))

bench-fence: setup ## what row level security costs a mix query, with and without in turns
	@$(BIN)/python -m bench.fence

bench-lazy: setup ## the lazy index by size: rate, bytes, legs, changes (SIZES=1000,10000,100000 DATA= WRITE=0); writes docs/bench-lazy.md
	@$(BIN)/python -m bench.lazy $(if $(SIZES),--sizes $(SIZES)) $(if $(DATA),--data "$(DATA)") \
		$(if $(filter 0,$(WRITE)),,--write docs/bench-lazy.md)

bench-load: setup ## 64 clients over 20 workspaces while documents come and go; writes docs/bench-load.md (CLIENTS= PAUSE= SECONDS= DOCUMENTS=)
	@$(BIN)/python -m bench.load $(if $(CLIENTS),--clients $(CLIENTS)) $(if $(PAUSE),--pause $(PAUSE)) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(DOCUMENTS),--documents $(DOCUMENTS)) --write docs/bench-load.md

bench-scale-out: setup ## two hosts of which one is killed, then 1, 2 and 4 extract workers against a 300 ms model (DOCUMENTS=24 WORKERS=1,2,4)
	@$(BIN)/python -m bench.scale_out $(if $(DOCUMENTS),--documents $(DOCUMENTS)) $(if $(WORKERS),--workers $(WORKERS))

bench-storage: setup ## bytes in Postgres for a byte of text, by table, with both engines (DATA= DOCUMENTS=60 WRITE=1)
	@$(BIN)/python -m bench.storage $(if $(DATA),--data "$(DATA)") $(if $(DOCUMENTS),--documents $(DOCUMENTS)) \
		$(if $(WRITE),--write docs/bench-storage.md)

bench-tenants: setup ## what a tenant pays for the others: the same requests beside one and beside many (TENANTS=200 WORKSPACES=10)
	@$(BIN)/python -m bench.tenants $(if $(TENANTS),--tenants $(TENANTS)) $(if $(WORKSPACES),--workspaces $(WORKSPACES))

bench-vectors: setup ## what an ANN index costs and saves by a workspace's size (DIMENSIONS=a,b SIZES=a,b INDEX_UP_TO=n)
	@$(BIN)/python -m bench.vectors $(if $(DIMENSIONS),--dimensions $(DIMENSIONS)) $(if $(SIZES),--sizes $(SIZES)) \
		$(if $(INDEX_UP_TO),--index-up-to $(INDEX_UP_TO))

eval: setup ## measure retrieval and themes into docs/evaluation.md, themes-evaluation.md, theme-questions.md: DATA=folder MODES=a,b SETS=a,b QUESTIONS=n EMBEDDING=profile JUDGE=profile
	@$(BIN)/python -m bench.eval --output docs/evaluation.md $(if $(DATA),--data "$(DATA)") --modes "$(MODES)" --sets "$(SETS)" \
		--questions $(or $(QUESTIONS),0) --embedding $(or $(EMBEDDING),offline-use) $(if $(JUDGE),--judge "$(JUDGE)")
	@$(BIN)/python -m bench.themes --output docs/themes-evaluation.md $(if $(DATA),--data "$(DATA)")
	@$(BIN)/python -m bench.theme_questions --output docs/theme-questions.md $(if $(DATA),--data "$(DATA)")

eval-quick: setup ## measure retrieval on the extract in tests/data; fails if the lazy mode is not as good as it has to be
	@$(BIN)/python -m bench.eval --data tests/data/retrieval --embedding offline-wordllama \
		--modes bm25,vectors,rrf,baseline,lazy-balanced

eval-duplicates: setup ## measure how spoilt and real other names are found again; fails below precision 0.95 or recall 0.8 (SEED=n)
	@$(BIN)/python -m bench.duplicates $(if $(SEED),--seed $(SEED))

eval-routing: setup ## measure how well `auto` picks modes into docs/routing.md; fails below 85 % that fit, or 2 points under the oracle
	@$(BIN)/python -m bench.routing --output docs/routing.md

eval-themes: setup ## measure themes and their labels into docs/themes-evaluation.md (DATA=folder); fails below an NMI of .70 in English
	@$(BIN)/python -m bench.themes --output docs/themes-evaluation.md $(if $(DATA),--data "$(DATA)")

eval-theme-questions: setup ## measure how many articles of a subject each mode brings into docs/theme-questions.md (DATA=folder LANGUAGES=en,zh)
	@$(BIN)/python -m bench.theme_questions --output docs/theme-questions.md $(if $(DATA),--data "$(DATA)") \
		$(if $(LANGUAGES),--languages "$(LANGUAGES)")

bench-query: setup ## ask for context beside LightRAG's own call, on the same tables (DATA= SIZES=100,200 WRITE=1)
	@$(BIN)/python -m bench.sidebyside.query $(if $(DATA),--data "$(DATA)") $(if $(SIZES),--sizes $(SIZES)) \
		$(if $(WRITE),--write docs/bench-query.md)

migrate: setup ## bring the database of TRELLIS_* settings to the newest schema
	@$(BIN)/trellis migrate

lock: setup ## resolve pyproject.toml again into requirements.lock, its part that production installs, and that with the extra `age`
	@$(COMPILE) --extra dev --output-file requirements.lock
	@$(COMPILE) --constraints requirements.lock --output-file requirements-runtime.lock
	@$(COMPILE) --extra age --constraints requirements.lock --output-file requirements-age.lock

clean: ## remove the environment and caches (the data of `make dev` stays)
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build *.egg-info
