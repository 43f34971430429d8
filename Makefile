# Every target sets itself up in .venv: Python 3.11 or newer with pip is all it needs.
# PYTHON=... picks an interpreter, JOBS=... the number of test processes, ARGS=... goes to the tool.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SOURCES := server rpc_schema/callboard_rpc editors/headless
JOBS ?= $(shell echo $$((($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2)))
ARGS ?=
PYTEST := $(BIN)/python -m pytest --ignore tests/bench

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-agents demo-group test check format bench schema lock soak tools vsix clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

$(INSTALLED): requirements.lock pyproject.toml .ci/setup .ci/uv
	@.ci/setup

# The stamp holds the folder that was set up: an environment that was moved with it no longer works.
# Cold start matters, and PYTHONDONTWRITEBYTECODE would have every start compile anew.
setup: $(INSTALLED) ## install everything into .venv, once
	@[ "$$(cat $(INSTALLED))" = "$(CURDIR)" ] || .ci/setup
	@$(BIN)/python -m compileall -q $(SOURCES)

demo: setup ## an agent repairs a small project, in under half a minute
	@$(BIN)/callboard demo $(ARGS)

demo-agents: setup ## a lead and three agents on a script, through a killed server, in ten seconds
	@$(BIN)/callboard demo-agents $(ARGS)

demo-group: setup ## a lead and three workers share a task board through a crash of the server
	@$(BIN)/callboard demo-group $(ARGS)

# Most tests wait for processes that wait for them: three keep two processors busy. Their modules are
# kept as pytest compiles them, which takes each test process a quarter of a minute.
test: setup ## the tests, but for soak runs and real models
	@.ci/left-out
	@env -u PYTHONDONTWRITEBYTECODE $(PYTEST) -n $(JOBS) --dist worksteal --maxprocesses 8 -m "not soak and not real_model" $(ARGS)

check: setup ## lint, format, types, import contracts, generated schema, house rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/python rpc_schema/generate.py --check
	$(BIN)/python .ci/house_rules.py
	$(BIN)/python .ci/lua_lint.py
	.ci/vscode-lint

format: setup ## format Python, Lua and TypeScript
	@$(BIN)/ruff format -q .
	@$(BIN)/python .ci/lua_lint.py --write
	@.ci/vscode-lint --write

bench: setup ## measure against the budgets
	@$(BIN)/python tests/bench/run.py $(ARGS)

schema: setup ## write rpc_schema/generated from the contract
	@$(BIN)/python rpc_schema/generate.py

soak: setup ## the long randomised runs
	@$(PYTEST) -m soak $(ARGS) || [ $$? -eq 5 ]

tools: setup ## bring what tests and checks of the editors' plugins need
	@.ci/tools

vsix: setup ## pack the VS Code extension as editors/vscode/dist/callboard.vsix
	@.ci/npm-ci editors/vscode editors/vscode
	@.ci/node node editors/vscode/vsix.mjs

# Names and hashes only: where packages come from is the affair of whoever installs them.
lock: setup ## resolve requirements.lock anew
	@.ci/uv pip compile -q pyproject.toml --group dev --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		-o requirements.lock $(ARGS)

clean: ## remove whatever the other targets made
	rm -rf $(VENV) .tools dist .demo .artefacts editors/vscode/node_modules editors/vscode/dist .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find server rpc_schema editors tests .ci -name __pycache__ -prune -exec rm -rf {} +
