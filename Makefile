# Everything runs in .venv, which these targets make from the pinned, hash-checked requirements.
# Only python3 (3.11 or later), python3-venv and make are needed; uv is used where it is there.

PY := .venv/bin/python
ARGS ?=
.DEFAULT_GOAL := help
.PHONY: help up drive test check conformance corpus mutants faults model injected describe clients bench dist lock runtime dev clean

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

up: runtime ## start everything for trying it out: database, web, two workers, samples (Ctrl-C stops it)
	@exec $(PY) -m cli.main up $(ARGS)

drive: runtime ## drive traffic through the samples of a running `make up` (ARGS='--seconds 60 --failures 30')
	@exec $(PY) -m cli.main samples drive $(ARGS)

test: dev ## all tests, a real Chromium and PgBouncer included (ARGS='tests/web -k claim' goes to pytest)
	@BATON_CHROMIUM="$$(scripts/chromium)" && BATON_PGBOUNCER="$$(scripts/pgbouncer)" && export BATON_CHROMIUM BATON_PGBOUNCER && \
	exec $(PY) -m pytest -p tests.no_skips --durations=25 $(or $(ARGS),-n 2 --dist loadfile --no-loadscope-reorder)

check: dev ## ruff, mypy, import rules, architecture tests
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	$(PY) -m pytest -q -p tests.no_skips tests/architecture

conformance: dev ## run a folder of conformance cases (CASES=DIR JSON=out RENAME_SEED=n KILL=1)
	@exec $(PY) -m tests.conformance $(if $(CASES),"$(CASES)",) $(if $(JSON),--json "$(JSON)") $(if $(RENAME_SEED),--seed $(RENAME_SEED)) $(if $(KILL),--kill) $(ARGS)

corpus: runtime ## read every BPMN file of a folder, and count why some are refused (DIR=DIR JSON=out ACCOUNT=1)
	@$(PY) -m cli.main corpus $(if $(DIR),"$(DIR)",) $(if $(JSON),--json "$(JSON)")
	@$(if $(ACCOUNT),$(PY) -m tests.accounting "$(DIR)" --unknown $(ARGS))

mutants: dev ## remove each lock, guard and re-check in turn: the tests must notice (ARGS='--list')
	@exec $(PY) -m tests.mutants $(ARGS)

faults: dev ## a storm: mixed traffic while all of it is killed, cut, restarted (SEED=1 MINUTES=5 JSON=out SABOTAGE=1..8)
	@BATON_PGBOUNCER="$$(scripts/pgbouncer)" && export BATON_PGBOUNCER && \
	exec $(PY) -m tests.faults.storm $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SABOTAGE),--sabotage $(SABOTAGE)) $(if $(JSON),--json "$(JSON)") $(ARGS)

model: dev ## every state of durable work's life: what holds, and a counterexample for each other set of rules
	@exec $(PY) -m tests.lease_model

injected: dev ## the engine's tests while connections are lost, commits stay unanswered and statements fail (SEED=1 KINDS='lost before,delay')
	@BATON_INJECT="$(or $(SEED),1)" BATON_INJECT_KINDS="$(KINDS)" exec $(PY) -m pytest -q -p tests.no_skips -p tests.injected.plugin \
	$(or $(ARGS),tests/commands tests/db tests/races tests/scenarios_db tests/traces tests/engine)

describe: dev ## Schemathesis asks every operation of the API at length (EXAMPLES=100 SEED=1)
	@BATON_API_EXAMPLES="$(or $(EXAMPLES),100)" BATON_API_SEED="$(or $(SEED),1)" exec $(PY) -m pytest -q -p tests.no_skips tests/web/test_api_asked.py $(ARGS)

clients: dev ## external-task clients of other makers, unmodified, against a real server (ARGS='--only pycamunda --tasks 3')
	@scripts/clients
	@exec $(PY) -m tests.clients $(ARGS)

bench: dev ## measure (ARGS='engine --json'; for `queue` procrastinate and DBOS are installed to be measured beside)
	@$(if $(findstring queue,$(ARGS)),scripts/environment bench || echo "Going on without procrastinate and DBOS" >&2)
	@exec $(PY) -m cli.main bench $(ARGS)

dist: dev ## two wheels in dist/: Baton, with templates, static files and migrations; and baton-client, for programs elsewhere
	@rm -rf build dist client/build
	$(PY) -m build --wheel --no-isolation
	$(PY) -m build --wheel --no-isolation --outdir dist client
	@rm -rf build client/build

lock: dev ## pin the requirements anew from pyproject.toml
	scripts/lock

clean: ## remove what was built; keeps .venv and the data of `make up`
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache test-results

runtime:
	@scripts/environment runtime

dev:
	@scripts/environment dev
