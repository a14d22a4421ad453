# make demo   set up, compare two models on real data, print the result, write report.html
# make test   set up, run the tests          make test-slow   the long calibration studies
# make lint   style, types, import layers    make bench       speed and memory, as ratios
# make docs   the documentation, in site/    make calibration the table of null problems, docs/null-problems.md
# make bench-gpu  the same at scale, on an accelerator; make scaling  how the cost grows, docs/images/scaling.svg

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PROCESSES ?= 2

.PHONY: demo test test-slow lint docs bench bench-gpu scaling calibration browser clean

demo: $(READY)
	$(BIN)/lksd demo --report report.html

test: $(READY) browser
	$(BIN)/python -m pytest -n $(PROCESSES) --no-loadscope-reorder -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -n $(PROCESSES) -m slow -s

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(READY)
	$(BIN)/python benchmarks/run.py

bench-gpu: $(READY)
	$(BIN)/python benchmarks/gpu.py

scaling: $(READY)
	$(BIN)/python benchmarks/scaling.py scaling.json
	$(BIN)/python benchmarks/scaling.py --plot scaling.json

calibration: $(READY)
	$(BIN)/python benchmarks/calibration.py

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lksd needs Python 3.11 or newer; set PYTHON=/path/to/it")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY)

# The report's tests open it in Chromium; where it is not there and cannot be installed they are skipped, and say so.
browser:
	@command -v chromium chromium-browser google-chrome > /dev/null || { \
	  echo "installing chromium for the tests of the report"; \
	  SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	  { timeout 120 $$SUDO apt-get update -qq && timeout 600 $$SUDO apt-get install -qq -y --no-install-recommends chromium; } > /dev/null 2>&1 \
	  || echo "chromium cannot be installed here; the tests that need it will be skipped"; }

clean:
	rm -rf $(VENV) report.html site .mypy_cache .pytest_cache .ruff_cache .hypothesis .jax_cache
