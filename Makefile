# Each target sets up what it needs, so that a fresh machine needs Python 3.11+ and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.13.0
READY := $(VENV)/.ready
TYPING := build/typing/slotscope
PACKAGES := engine instrument kernels dashboard
WORKERS ?= 2
export OMP_NUM_THREADS ?= 1

SGLANG ?= 0.5.23
SGLANG_READY = .venv-sglang/$(SGLANG)/.ready

.PHONY: demo test test-sglang check types fmt bench gpu browser clean

demo: $(READY)  ## a real bug, live; HEADLESS=1 prints the finding and exits
	$(BIN)/slotscope demo $(if $(HEADLESS),--headless)

test: check browser  ## everything that CI runs
	$(BIN)/pytest -q -n $(WORKERS) -m 'not sglang' --ignore tests/tidy

test-sglang: $(READY) $(SGLANG_READY)  ## the real SGLang on this CPU; SGLANG=0.5.17 for another release
	SGLANG=$(SGLANG) $(BIN)/pytest -q -m sglang tests

check: $(READY) types  ## layout, lint, types and the rules of the house
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	MYPYPATH=build/typing:tests $(BIN)/mypy $(PACKAGES:%=-p slotscope.%)
	$(BIN)/pytest -q tests/tidy

fmt: $(READY)  ## put the layout right
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(READY)  ## print every table, and write it to benchmarks/results/
	$(BIN)/python benchmarks

gpu: $(READY)  ## the kernels on a CUDA device
	$(BIN)/pytest -q -m gpu tests

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet '$(TORCH)'
	$(BIN)/pip install --quiet --editable '.[all]' --group dev
	touch $@

# SGLang goes without its own dependencies (GPUs, media, other models: 5 GB); the file pins the rest.
.venv-sglang/%/.ready: tests/sglang/releases/%.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --upgrade pip
	$(@D)/bin/pip install --quiet --no-compile --constraint $< '$(TORCH)'
	$(@D)/bin/pip install --quiet --no-compile --no-deps --requirement $<
	$(@D)/bin/pip install --quiet --constraint $< --editable .
	touch $@

# The packages lie at the top and are imported as slotscope.*: mypy finds them through links.
types: $(TYPING)
$(TYPING): pyproject.toml
	mkdir -p $@
	for part in instrument/_root/*; do ln -sfn ../../../$$part $@/; done
	for part in $(PACKAGES); do ln -sfn ../../../$$part $@/$$part; done
	touch $@

browser:  ## Debian's chromium, for the dashboard's tests
	@if command -v chromium >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	else echo "No chromium: the browser tests will be skipped. Install it: sudo apt-get install chromium"; fi

clean:
	rm -rf $(VENV) .venv-sglang build *.egg-info
