# Thin verbs over bootstrap.py; Windows users call it directly: py bootstrap.py run
# More words for a verb go into ARGS: make test ARGS="-k store", make bench ARGS=loop
PYTHON ?= python3

run test lint bench setup lock clean:
	@$(PYTHON) bootstrap.py $@ $(ARGS)

.PHONY: run test lint bench setup lock clean
.DEFAULT_GOAL := run
