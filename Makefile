# `make help` lists the targets. Everything runs in .venv, which is made on demand.
SHELL := /bin/bash
PYTHON ?= python3
PY := .venv/bin/python
TIER ?= control
export PYTHONPATH := operator

.DEFAULT_GOAL := help
.PHONY: help test lint fmt unit integration bench bench-api bench-page page screenshots crds crds-check manifests manifests-check crds-delete crds-restore \
	e2e soak up demo down cluster-up cluster-down cluster-clean programs kubeconfig kubectl-path \
	kubectl pins clean

help: ## show this
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.venv/done: requirements/runtime.txt requirements/api.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: set PYTHON=")'
	@echo "making .venv (about a minute the first time)" >&2
	@$(PYTHON) -m venv .venv
	@.venv/bin/pip install --quiet --require-hashes -r requirements/runtime.txt -r requirements/api.txt -r requirements/dev.txt
	@touch $@

test: .venv/done ## lint, then every test this machine can run
	@$(MAKE) --no-print-directory lint programs
	$(PY) -m pytest

# A machine that cannot build them still runs the other tests; pytest then says what was left out.
programs: .venv/done ## make the Kubernetes programs and images that the cache does not hold yet
	-@$(PY) -m tests.cluster build

lint: .venv/done ## ruff, mypy, import contracts, drift of what is generated, yamllint
	.venv/bin/ruff format --check --quiet .
	.venv/bin/ruff check --quiet .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo
	@$(MAKE) --no-print-directory crds-check manifests-check
	.venv/bin/yamllint --strict .

fmt: .venv/done ## format and fix what can be fixed
	.venv/bin/ruff check --fix --quiet . ; .venv/bin/ruff format --quiet .

unit: .venv/done ## tests that need no cluster
	$(PY) -m pytest tests/unit

integration: .venv/done programs ## tests on a real kube-apiserver
	$(PY) -m pytest tests/integration

bench: .venv/done programs ## measure speed and cost, about 12 minutes (ONLY=S2,S4 AGENTS=1000 RUNS=1 LARGE=10000 WINDOW=120)
	$(PY) -m tests.bench --agents=$(or $(AGENTS),1000) --runs=$(or $(RUNS),1) $(if $(LARGE),--large=$(LARGE)) $(if $(WINDOW),--window=$(WINDOW)) $(if $(ONLY),--only=$(ONLY))

bench-api: .venv/done programs ## measure reads of the management API beside the API server's (AGENTS=10000 READERS=500)
	$(PY) -m tests.bench.management --agents=$(or $(AGENTS),10000) --readers=$(or $(READERS),500)

bench-page: .venv/done programs ## measure how soon the page shows a fleet and a change of it (AGENTS=2000)
	$(PY) -m tests.bench.browsing --agents=$(or $(AGENTS),2000)

page: .venv/done programs ## tests of the live page in a browser
	$(PY) -m pytest tests/page

screenshots: .venv/done programs ## take the pictures of the page in docs/images anew, about 2 minutes
	$(PY) -m tests.showcase.screenshots

e2e: .venv/done programs ## tests on real nodes, the operator in the cluster
	$(PY) -m pytest tests/e2e

soak: .venv/done programs ## those that take minutes: default intervals, longer outages
	$(PY) -m pytest tests/integration tests/e2e -m soak

up: .venv/done ## show it: a cluster with a real node, the operator, sample agents (KUBECONFIG=… IMAGE=…: on yours)
	@$(if $(IMAGE),IMAGE="$(IMAGE)") $(PY) -m tests.showcase up

demo: .venv/done ## freeze an agent of it and watch it being replaced
	@$(PY) -m tests.showcase demo

down: cluster-down ## take the cluster of `make up` down

crds: .venv/done ## write crds/ and docs/reference.md from the models
	@$(PY) -m supervisor_operator.crdgen --reference docs/reference.md crds

crds-check: .venv/done ## fail if one of them differs from the models
	$(PY) -m supervisor_operator.crdgen --check --reference docs/reference.md crds

manifests: .venv/done ## write what follows from manifests/: the Helm chart, Argo CD's ConfigMap
	@$(PY) manifests/make_chart.py
	@$(PY) manifests/make_argocd.py

manifests-check: .venv/done ## fail if one of them differs
	@$(PY) manifests/make_chart.py --check
	@$(PY) manifests/make_argocd.py --check

crds-delete: .venv/done ## back up all objects, then delete the CRDs (CONFIRM=yes; uses your KUBECONFIG)
	@$(PY) crds/manage.py delete $(if $(filter yes,$(CONFIRM)),--yes)

crds-restore: .venv/done ## install the CRDs and restore a backup (BACKUP=file)
	@$(PY) crds/manage.py restore "$(BACKUP)"

cluster-up: .venv/done ## start a local Kubernetes (TIER=control|fake|node, NODES=1, AUDIT=1)
	@$(PY) -m tests.cluster up --tier "$(TIER)" $(if $(NODES),--nodes $(NODES)) $(if $(AUDIT),--audit)

cluster-down: .venv/done ## take it down
	@$(PY) -m tests.cluster down

cluster-clean: .venv/done ## take down every local cluster of this user, also half-dead ones
	@$(PY) -m tests.cluster clean

kubeconfig: .venv/done ## print the path of the admin kubeconfig (use make -s)
	@$(PY) -m tests.cluster kubeconfig

kubectl-path: .venv/done ## print the path of a kubectl that fits (use make -s)
	@$(PY) -m tests.cluster kubectl-path

kubectl: .venv/done ## kubectl on the local cluster: make kubectl ARGS="get sup"
	@$(PY) -m tests.cluster kubectl $(ARGS)

pins: ## write the pinned requirements anew (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements/runtime.in -o requirements/runtime.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements/api.in -o requirements/api.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements/dev.in -o requirements/dev.txt

clean: ## remove .venv and caches of this checkout
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
