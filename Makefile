# SPDX-License-Identifier: Apache-2.0
#
# Short names for what CMake does (CMakePresets.json). "make help" lists the targets.
PRESET ?= release
PREFIX ?= /usr/local
DURATION ?= 600

.DEFAULT_GOAL := all
.PHONY: all run check test test-all bench bench-check bench-preempt casestudy growth applications cholesky insitu tail soak soak-tests soak-ult soak-preempt format lint install clean help

all:       ## build one preset (PRESET=release)
	@cmake --preset $(PRESET)
	@cmake --build --preset $(PRESET)

run:       ## real programs, without and with thrum
	@./run

check:     ## while working: build, unit tests of the release build, lint of changed files
	@scripts/check.sh

test:      ## before a commit: everything but what is heavy
	@./test

test-all:  ## ./test and the heavy tests: sanitizers, clang, aarch64, chroots, JDK, PyTorch
	@scripts/test-all.sh

bench: all ## all benchmarks, as tables, and the figure of spawn: build/<preset>/spawn.svg
	@scripts/bench.sh build/$(PRESET)

bench-check: all ## benchmarks with targets; fails if one is missed
	@scripts/bench-check.sh build/$(PRESET)

casestudy: ## the experiments of docs/studies/casestudy.md, with figures: build/casestudy
	@cmake --preset $(PRESET)
	@cmake --build --preset $(PRESET) --target bench-casestudy
	@scripts/casestudy.sh build/$(PRESET)

growth:    ## how cost grows (docs/studies/growth.md): measured, simulated, figures: build/growth
	@cmake --preset $(PRESET)
	@cmake --build --preset $(PRESET) --target bench-growth bench-growth-peers
	@scripts/growth.sh build/$(PRESET)

applications: ## preemption at work: the next three
	@cmake --preset $(PRESET)
	@cmake --build --preset $(PRESET) --target bench-applications
	@scripts/applications.sh build/$(PRESET)

cholesky:  ## nested parallelism with a busy-waiting library (docs/studies/cholesky.md), with figures: build/applications
insitu:    ## a simulation analysed while it runs (docs/studies/insitu.md), likewise
tail:      ## short requests beside long ones (docs/studies/tail-latency.md), likewise
cholesky insitu tail:
	@cmake --preset $(PRESET)
	@cmake --build --preset $(PRESET) --target bench-applications
	@scripts/applications.sh build/$(PRESET) $@

bench-preempt: ## what preemption costs (docs/internals/preemption-cost.md), with figures: build/preempt
	@cmake --preset $(PRESET)
	@cmake --build --preset $(PRESET) --target bench-preempt
	@scripts/preempt-cost.sh build/$(PRESET)

soak:      ## soak-tests, then soak-preempt
	@$(MAKE) --no-print-directory soak-tests
	@$(MAKE) --no-print-directory soak-preempt

soak-tests: ## repeat the tests for DURATION=600 seconds after the build, and random graphs as below
	@scripts/soak.sh $(DURATION)

soak-ult: all ## random graphs of user-level threads (DURATION, and WORKERS and SEED if given)
	@build/$(PRESET)/tests/stress/stress-ult --seconds $(DURATION) $(WORKERS:%=--workers %) $(SEED:%=--seed %)

soak-preempt: all ## stress preemption in all modes for an hour; a shorter run does not count (DURATION, SEED)
	@scripts/soak-preempt.sh build/$(PRESET) $(if $(filter file,$(origin DURATION)),3600,$(DURATION)) $(SEED:%=--seed %)

format:    ## clang-format, in place
	@scripts/lint.sh --format

lint:      ## clang-format, clang-tidy, shellcheck and the documents, without changing anything
	@scripts/lint.sh

install:   ## into PREFIX (/usr/local), below DESTDIR if set
	@case '$(PREFIX)' in /*) ;; *) echo "make install: PREFIX is an absolute path, not '$(PREFIX)'" >&2; exit 2;; esac
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	@cmake --build --preset release --target thrum-installed
	@cmake --install build/release --prefix $(PREFIX)

clean:     ## remove build/, except the chroots, which are slow to make
	@if [ -d build ]; then find build -mindepth 1 -maxdepth 1 ! -name chroots -exec rm -rf {} +; fi

help:
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null || \
	 sed -n 's/^\([a-z-]*\):[^#]*## /make \1	/p' Makefile
