# A thin door to tools/ and CMake; `make help` lists what there is. Everything that needs packages asks tools/setup for
# them first. Build folders: build/ (release), build/<preset>/ (dev, asan, clang, coverage, aarch64).
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20
PRESET ?= release
.DEFAULT_GOAL := all
ROUNDS ?= 10000
.PHONY: all demo image test test-cluster test-fresh soak bench placement tune fuzz format check coverage gpu-check install clean help

all: ## build the release into build/ (PRESET=dev, asan, clang, coverage or aarch64: into build/<preset>/)
	@tools/setup build $(if $(filter-out release,$(PRESET)),test) $(if $(filter clang,$(PRESET)),fuzz) $(if $(filter aarch64,$(PRESET)),guests)
	@tools/build $(PRESET)

demo: ## two containers, one card: see each held to its slice (GPU=real: on this machine's own card)
	@tools/setup build
	@tools/build release demo
	@tools/demo $(if $(filter real,$(GPU)),--gpu=real)

test: ## unit tests, the programs against peers and the simulation, the demo as a test, the checkers
	@tools/setup build test
	@tools/build release
	@tools/run-tests release

test-cluster: ## a real kubelet and containerd (root; the first run builds them, some minutes)
	@tools/setup build test cluster
	@tools/build release
	@tools/test-cluster

test-fresh: ## make demo and make test in a bare Debian 12 made by debootstrap (root)
	@tools/test-fresh

soak: ## ROUNDS random faults against the agent; the scheduler's model checker and replicas (SEED=N: the same dice again)
	@tools/setup build test
	@tools/build release
	@tools/soak $(ROUNDS) $(SEED)

bench: ## the figures, into build/bench.json (FULL=1: first sync at full size; HAMI_TRACES=folder: placement, too)
	@tools/setup build test bench
	@tools/build release
	@/usr/bin/python3 tests/bench/run_bench.py

placement: ## writes the table and the pictures of docs/placement.md anew (HAMI_TRACES=folder; some minutes)
	@tools/setup build
	@tools/build release
	@/usr/bin/python3 tests/bench/bench_placement.py --write

tune: ## searches the weights of the policy fgd (HAMI_TRACES=folder; hours: MINUTES=N ends it)
	@tools/setup build
	@tools/build release
	@/usr/bin/python3 tests/bench/tune_placement.py $(if $(MINUTES),--minutes $(MINUTES))

fuzz: ## run each fuzz target for FUZZ_SECONDS (default 20)
	@tools/setup build test fuzz
	@tools/build clang
	@tools/fuzz $(FUZZ_SECONDS)

format: ## let clang-format rewrite the sources
	@tools/setup check
	@/usr/bin/python3 tools/check_format.py --fix

check: ## format, layers, banned calls, sizes, shell scripts, spelling, links
	@tools/setup check
	@tools/check

coverage: ## run the tests with gcov counters and print the figure
	@tools/setup build test coverage
	@tools/build coverage
	@tools/coverage

gpu-check: ## what can be checked only on a machine with an NVIDIA driver
	@tools/setup build
	@tools/build release
	@tools/gpu-check

image: ## the agent's image as an OCI archive, build/hami-device-plugin.tar (no daemon, no root)
	@tools/setup build
	@tools/build release
	@deploy/docker/build-image.sh

install: ## programs and libraries below $(DESTDIR)$(PREFIX)
	@tools/setup build
	@tools/build release
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

clean: ## remove build/
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done
