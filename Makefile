# SweepArea: `make help` lists what there is. Needs Python 3.11+ and make; everything else is brought or fetched once.
PYTHON ?= python3
PY := .venv/bin/python
# whatever the locale, files' names and texts are UTF-8
export PYTHONUTF8 = 1
# settings of Python for somebody's own programs: modules are found from here, warnings are no errors, commands end
unexport PYTHONSAFEPATH PYTHONWARNINGS PYTHONINSPECT PYTHONOPTIMIZE PYTHONIOENCODING PYTHONINTMAXSTRDIGITS
# tests start their own Spark server; a developer's services and settings must not reach them
PYTEST := env -u SPARK_REMOTE -u SWEEPAREA_HOME -u SWEEPAREA_DATA -u SWEEPAREA_RUN $(PY) -m pytest
LINT := $(PY) -m ruff check . && $(PY) -m ruff format --check . && .venv/bin/lint-imports --no-cache && PYRIGHT_PYTHON_GLOBAL_NODE=0 $(PY) -m pyright

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: user users flink bench bench-full machines s3 help env example jars up stop status demo test test-all test-fast fuzz faults mutants keep lint format lock clean distclean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

env:  ## the environment .venv: all that the command sweeparea needs without Airflow
	@$(PYTHON) -m sweeparea.infra.setup.bootstrap

example:  ## as env, with the CSV files of the flights example
	@$(PYTHON) -m sweeparea.infra.setup.bootstrap --example

jars: env  ## as env, with the Delta jars of the Spark server
	@$(PY) -m sweeparea.infra.setup.jars

demo: example jars up  ## set up and start everything, load the flights of 2013, show results
	@$(PY) -m queries.flights.demo

up: jars  ## start PostgreSQL, Spark Connect and Airflow
	@$(PY) -m sweeparea.infra.services.up start

status: env  ## what runs, where
	@$(PY) -m sweeparea.infra.services.up status

users: env  ## who may log in to Airflow, and as what
	@$(PY) -m sweeparea.infra.services.user_command list

user: env  ## add a user or change the role: make user NAME=ann ROLE=viewer (user, op, admin; none removes; ASK=1 asks for a password)
	@$(PY) -m sweeparea.infra.services.user_command $(if $(filter none,$(ROLE)),remove '$(NAME)',set '$(NAME)' '$(ROLE)' $(if $(ASK),--ask))

stop:  ## end all that was started, by process id
	@if [ -x $(PY) ]; then $(PY) -m sweeparea.infra.services.up stop; else echo "nothing was set up here, so nothing runs"; fi

lint: example  ## ruff, import-linter and pyright
	@$(LINT)

format: example  ## let ruff rewrite the layout of the code
	@$(PY) -m ruff check --fix . ; $(PY) -m ruff format .

test-fast: example  ## the tests that need no JVM (seconds)
	@$(PYTEST) -m "not spark and not airflow and not slow"

# two processes side by side: the tests that share a Spark session; and lint, then the rest, whose output comes last
test: jars example  ## lint and the test suite (under 20 minutes)
	@mkdir -p .run; echo "lint found faults (above), so the tests beside were not run" > .run/tests-beside.log; \
	 ($(LINT) && $(PYTEST) -m "not slow and (apart or not spark)" > .run/tests-beside.log 2>&1) & beside=$$!; \
	 $(PYTEST) -m "not slow and spark and not apart"; status=$$?; \
	 wait $$beside || status=1; cat .run/tests-beside.log; exit $$status

test-all: jars lint  ## as test, with the long suites
	@$(PYTEST)

fuzz: jars  ## random queries against brute force: make fuzz SEED=1 N=200 (LONG=1: many slices, odd keys)
	@$(PY) -m tests.replay.fuzz --seed $(or $(SEED),0) --n $(or $(N),100) $(if $(LONG),--long)

faults: jars  ## kill and suspend runs at every point that they pass (an hour or two)
	@$(PYTEST) tests/faults && $(PY) -m benchmarks.faults

s3: jars  ## the jobs against an S3 server on this machine (fetches 690 MB of jars and moto, once)
	@$(PY) -m sweeparea.infra.setup.jars --s3
	@test -x .tools/moto/bin/moto_server || { $(PYTHON) -m venv .tools/moto && .tools/moto/bin/python -m pip install -q 'moto[server,s3]==5.2.5'; }
	@SWEEPAREA_MOTO=$(CURDIR)/.tools/moto/bin/python $(PYTEST) tests/s3

keep: jars  ## what the engine gives, to compare commits by diff -r: make keep FOLDER=/tmp/before (N=300 random cases)
	@$(PY) -m tests.golden.keep '$(FOLDER)' --random $(or $(N),300)

machines: jars  ## one application under other locales, zones, proxies and settings: the same rows (half an hour; ONLY=text)
	@$(PY) -m tests.machines --only '$(ONLY)'

mutants: jars  ## put faults into the engine one by one: do the tests notice? (half an hour; ONLY=text)
	@$(PY) -m tests.mutations --only '$(ONLY)'

flink: jars  ## Flink, a rival of the benchmarks, in an environment of its own (730 MB)
	@$(PY) -m benchmarks.engines.flink_setup

bench: flink  ## speed beside Flink and DuckDB: benchmarks/results/bench.json (15 minutes)
	@$(PY) -m benchmarks.bench

bench-full: flink  ## all of NEXMark, all rivals, and the other benchmarks (hours)
	@$(PY) -m benchmarks.bench --full

lock: env  ## rewrite the lock files from infra/requirements.in
	@$(PYTHON) -m sweeparea.infra.setup.lock

clean:  ## stop, then remove data, results and services' files; keeps .venv .tools .jars
	@if [ -x $(PY) ]; then $(PY) -m sweeparea.infra.services.up clean; fi
	@rm -rf .data .run .pytest_cache .ruff_cache .hypothesis
	@echo "removed .data and .run; kept .venv, .tools and .jars (make distclean removes these too)"

distclean: clean  ## as clean, with the environment and all that was fetched
	@rm -rf .venv .tools .jars build *.egg-info
