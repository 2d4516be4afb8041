# Thin wrappers: the work is done by the command mha-course, which every system has.
# Choose another Python with, say, `make lab PYTHON=python3.12`.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
COURSE := $(PY) -m mha_classroom.commands.cli
PYTEST := $(PY) -m pytest
# The cells of a notebook share one kernel, so that a file must stay with one worker. Some tests
# wait: three workers keep two cores busy. A cell may train for seconds, on a busy machine for minutes.
NBVAL := --nbval --nbval-current-env --nbval-cell-timeout=240 --dist loadfile --no-loadscope-reorder

.PHONY: help lab test test-browser run edit save exercises lint bench study prove pictures site doctor

help: ## list these targets
	@echo 'Read the course with `make lab`. All targets:'
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

lab: $(VENV)/.ready ## install what is needed and open JupyterLab (LAB_ARGS="--no-browser")
	$(COURSE) lab $(LAB_ARGS)

doctor: ## say what is installed, what is missing and how to fix it (PYTHON=... to choose)
	@if [ -x $(PY) ]; then $(COURSE) doctor; else $(PYTHON) -m mha_classroom.commands.cli doctor; fi

# All tests; with NB=05 those of one lesson: its notebooks, its tasks, their mistakes and answers.
ifdef NB
WHAT = tests/checks tests/project/test_notebooks.py $(wildcard notebooks/$(NB)_* solutions/$(NB)_*) \
    -k "$(NB)- or $(NB)_"
else
WHAT = tests notebooks solutions
endif

test: $(VENV)/.ready-dev ## install what tests need and run them all, notebooks included (NB=04: a lesson)
	@[ -z "$(NB)" ] || [ -n "$(wildcard notebooks/$(NB)_*)" ] || { echo 'There is no lesson $(NB).'; exit 2; }
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(PYTEST) $(WHAT) $(NBVAL) -m "not prove and not browser" -n 3 $(TEST_ARGS)

test-browser: $(VENV)/.ready-browser ## use the course in a real browser, as a learner does (needs Chromium)
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(PYTEST) tests/browser -m browser \
	    -n 2 --dist loadgroup --no-loadscope-reorder --durations 10 $(TEST_ARGS)

run: need-nb $(VENV)/.ready-dev ## execute a lesson and its solution in place (NB=04)
	$(COURSE) run $(NB)

edit: need-nb $(VENV)/.ready-dev ## write a lesson and its solution as text to .edit/ (NB=04)
	$(COURSE) edit $(NB)

save: need-nb $(VENV)/.ready-dev ## write the edited text back and run it (NB=04)
	$(COURSE) save $(NB)

exercises: $(VENV)/.ready-dev ## make exercises/ from solutions/, and the links between notebooks
	$(COURSE) release

lint: $(VENV)/.ready-dev ## check style and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

bench: $(VENV)/.ready-dev ## time the package against its peers
	$(PY) tests/course/bench.py
	$(PY) tests/course/bench_encode.py
	$(PY) tests/grading/bench_grading.py

study: $(VENV)/.ready-dev ## train all runs of lesson 08's study anew, which takes minutes
	$(PY) tests/course/study.py

prove: $(VENV)/.ready-dev ## run the long proofs, which are not part of `make test`
	$(PYTEST) tests -m prove $(TEST_ARGS)

pictures: $(VENV)/.ready-browser ## make the pictures of the README anew
	$(PY) docs/pictures/make.py

site: $(VENV)/.ready-dev ## make the site of the lessons in build/site
	$(COURSE) site

.PHONY: need-nb
need-nb:
	@if [ -z "$(NB)" ]; then echo 'Name a lesson, for example NB=04.'; exit 2; fi

COMMA := ,

# An install that was killed leaves its .installing behind, and the next one starts from nothing.
define INSTALL
@busy=$(VENV)/.installing; clear=; \
if [ -f $$busy ]; then \
    if kill -0 `cat $$busy` 2>/dev/null; then echo "Another make is installing; wait for it. If none is, remove $$busy."; exit 1; fi; \
    echo 'The last install was interrupted; starting over.'; clear=--clear; \
fi; \
if [ -n "$$clear" ] || ! $(PY) -m pip --version >/dev/null 2>&1; then \
    $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
        echo 'The course needs Python 3.11 or newer, and $(PYTHON) is not that.'; \
        echo 'Choose one: make $(MAKECMDGOALS) PYTHON=python3.12'; exit 1; }; \
    $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
        echo 'Python lacks venv or pip; on Debian and Ubuntu: sudo apt-get install python3-venv'; \
        exit 1; }; \
    $(PYTHON) -m venv $$clear $(VENV) || exit 1; \
fi; \
echo $$$$ > $$busy; \
$(PY) -m pip install -c constraints.txt -e "$(1)" && $(COURSE) setup-model && \
$(PY) -m compileall -q mha_course mha_classroom; code=$$?; \
rm -f $$busy; \
[ $$code = 0 ] || echo 'The install failed. What is said above is why; then start this again.'; \
exit $$code
endef

$(VENV)/.ready: pyproject.toml constraints.txt
	$(call INSTALL,.)
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt
	$(call INSTALL,.[dev])
	@touch $(VENV)/.ready $@

$(VENV)/.ready-browser: pyproject.toml constraints.txt
	$(call INSTALL,.[dev$(COMMA)browser])
	@touch $(VENV)/.ready $(VENV)/.ready-dev $@
