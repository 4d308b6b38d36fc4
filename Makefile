.PHONY: help setup build test demo bench vectors

help:
	@echo 'make test      every check; sets up what is missing, skips what is done'
	@echo 'make demo      a failing dependency, guarded: alone, then by four processes, Node and Python, sharing one circuit'
	@echo 'make bench     what a guarded call costs, side by side with other libraries'
	@echo 'make vectors   every runner on tests/vectors, or on VECTORS=<file or folder>'
	@echo 'make build     the Node and the Python package; make setup only what they need'

setup:
	@scripts/setup.sh

build: setup
	@scripts/build.sh

test:
	@scripts/test.sh

demo: build
	@node demo/main.mjs

bench:
	@scripts/bench.sh

vectors: build
	@scripts/vectors.sh $(if $(VECTORS),"$(VECTORS)")
