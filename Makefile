# SPDX-License-Identifier: Apache-2.0
#
# The front door. Meson does the building; these are the doors that people use.

BUILD ?= build

.DEFAULT_GOAL := all
.PHONY: all program help deps demo test bench fuzz format lint longest asan tsan clean

all: deps $(BUILD)/build.ninja ## build the program, build/tidelock, and its tests
	@grep -q '^build tests/' $(BUILD)/build.ninja || meson configure $(BUILD) -Dtests=enabled
	@ninja -C $(BUILD)
	@if [ -e $(BUILD)/src/cli/tidelock ]; then ln -sf src/cli/tidelock $(BUILD)/tidelock; fi

# The program alone: half the time, and neither clang nor cmocka.
program:
	@tools/install-deps --program
	@[ -e $(BUILD)/build.ninja ] || meson setup $(BUILD) -Ddeveloper=enabled -Dtests=disabled >/dev/null
	@ninja -C $(BUILD) src/cli/tidelock
	@ln -sf src/cli/tidelock $(BUILD)/tidelock

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

deps:
	@tools/install-deps

$(BUILD)/build.ninja:
	@meson setup $(BUILD) -Ddeveloper=enabled >/dev/null

demo: program ## load a real file tree, play the story of the two renamers, print what happened
	@tools/demo

test: deps ## build and run every test that CI runs
	@tools/run-tests

bench: ## measure beside PostgreSQL, Redis, Elasticsearch and print ratios; WHAT=put for one part
	@tools/install-deps --bench
	@[ -e build-release/build.ninja ] || meson setup build-release --buildtype=release >/dev/null
	@ninja -C build-release all bench/load bench/hello
	@if [ -e build-release/src/cli/tidelock ]; then ln -sf src/cli/tidelock build-release/tidelock; fi
	@bench/run $(WHAT) $(ARGS)

fuzz: deps ## run every fuzz target for a minute (SECONDS=60)
	@tools/run-fuzz $(or $(FUZZ_SECONDS),60)

format: ## format the sources in place
	@git ls-files '*.c' '*.h' | xargs clang-format -i

lint: all ## watch the arrows between the layers
	@tools/check-layers $(BUILD)
	@tools/check-includes

longest: ## print the twenty longest functions, for a reviewer to ask about
	@tools/longest

asan: deps ## every test under address and undefined behaviour sanitizers
	@tools/run-tests asan

tsan: deps ## every test under the thread sanitizer
	@tools/run-tests tsan

clean: ## remove what was built
	@rm -rf build build-asan build-tsan build-fuzz build-release
