# SPDX-License-Identifier: Apache-2.0
#
# The commands for users and contributors. Meson builds the program.

BUILD ?= build

# Clones share the cache of ccache, since it sees paths relative to the clone. The compiler lists the headers, so that nothing is preprocessed twice.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_DEPEND := 1

.DEFAULT_GOAL := all
.PHONY: all program help deps demo release test test-long bench fuzz format lint longest asan tsan install uninstall deb deb-test clean

all: deps $(BUILD)/build.ninja ## build the program, build/tidelock, and its tests
	@grep -q '^build tests/' $(BUILD)/build.ninja || meson configure $(BUILD) -Dtests=enabled
	@ninja -C $(BUILD)
	@if [ -e $(BUILD)/src/cli/tidelock ]; then ln -sf src/cli/tidelock $(BUILD)/tidelock; fi

# Takes half the time of `all`, and needs neither clang nor cmocka.
program: ## build the program alone, build/tidelock, with fewer packages
	@tools/install-deps --program
	@[ -e $(BUILD)/build.ninja ] || meson setup $(BUILD) -Ddeveloper=enabled -Dtests=disabled >/dev/null
	@ninja -C $(BUILD) src/cli/tidelock
	@ln -sf src/cli/tidelock $(BUILD)/tidelock

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

deps:
	@tools/install-deps

$(BUILD)/build.ninja:
	@meson setup $(BUILD) -Ddeveloper=enabled >/dev/null

demo: program ## load a real file tree, rename in it by two clients at once, print the results
	@tools/demo

release: ## build what is shipped and measured, build-release/tidelock, with a RocksDB without assertions
	@tools/build-release src/cli/tidelock

test: deps ## the gate, what CI runs: every behaviour once, in ten minutes; RELEASE=1: the same tests in what `make release` builds
	@tools/run-tests $(if $(RELEASE),shipped)

test-long: deps ## every suite in every build, many seeds, campaigns by time, measurements; WHAT=plain|asan|tsan|release|seeds|demo|mutations for one part, MINUTES=20 of seeds
	@tools/run-tests $(or $(WHAT),long) $(if $(MINUTES),--minutes=$(MINUTES))

bench: ## measure beside PostgreSQL, Redis, Elasticsearch and print ratios; WHAT=put for one part
	@tools/install-deps --bench
	@tools/build-release all bench/load bench/hello bench/save_bench bench/etcd_log
	@bench/run $(WHAT) $(ARGS)

fuzz: deps ## run every fuzz target for a minute (SECONDS=60)
	@tools/run-fuzz $(or $(FUZZ_SECONDS),60)

format: ## format the sources in place
	@git ls-files '*.c' '*.h' | xargs clang-format -i

lint: all ## check dependencies between layers, buffers, contracts, language, names of statics, and that benches compile
	@tools/check-layers $(BUILD)
	@tools/check-includes
	@tools/check-buffers $(BUILD)
	@tools/check-bench $(BUILD)
	@tools/check-contracts
	@tools/check-language
	@tools/letter-case --check
	@tools/count-checks --names

longest: ## print the twenty longest functions, for a reviewer to ask about
	@tools/longest

asan: deps ## every suite under the address and undefined behaviour sanitizers, as test-long has it
	@tools/run-tests asan

tsan: deps ## every suite in which threads meet under the thread sanitizer, as test-long has it
	@tools/run-tests tsan

# A release build. `make install` builds it if necessary; after `make release`, `sudo make install` only installs.
install: build-release/src/cli/tidelock ## install program, man pages, completion, unit: PREFIX=/usr/local, DESTDIR=
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" packaging/install build-release/src/cli/tidelock

build-release/src/cli/tidelock: FORCE
	@tools/build-release src/cli/tidelock
FORCE:

uninstall: ## remove what `make install` put there; the data stays
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" packaging/install --remove

deb: ## build the Debian package for this release, in build-deb/, and have lintian look at it; REVISION=1
	@tools/install-deps --deb
	@packaging/make-deb $(REVISION)

# Separate from `test`: it downloads a system of some sixty packages from a mirror.
deb-test: ## the package in a system of its own: installed, started, upgraded, removed, purged (as root)
	@tools/install-deps --deb
	@ls build-deb/tidelock_*.deb >/dev/null 2>&1 || packaging/make-deb
	@python3 tests/e2e/deb_test.py

clean: ## remove what was built
	@rm -rf build build-asan build-tsan build-fuzz build-release build-deb
