# Each line of the form "name: ## text" is a task; `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup shootout peers test-peers test test-examples new-package run-new-package server-load test-long test-layers test-power test-kill test-optimized test-tsan test-asan crash-runs fuzz bench figures format lint docs docs-serve man screenshots clean strata-bench

FUZZ_SECONDS ?= 60
POWER_STATES ?= 10000
KILLS ?= 10000
# SEED=n repeats a run of crashes.
CRASH_SEED := $(if $(SEED),seed=$(SEED))
SOURCES := $(wildcard Package.swift Sources Tests Examples Benchmarks fuzz)
# The folder of the documentation, and the port that shows it.
SITE := .build/documentation
PORT ?= 8080
# In the order of the site's first page: the modules that programs import first.
DOCUMENTED := Strata StrataSwiftData ObjectGraph LMDBStore SQLiteStore MemoryStore StoreInterface StoreModel StoreFiles StoreContract \
    PageCodec Datasets
# Progress for people; in a log, errors only.
QUIET := $(shell test -t 2 || echo --quiet)
# Leaves the macros out of the manifest, and with them swift-syntax, which takes minutes to compile.
NO_MACROS := STRATA_NO_MACROS=1
STRATA_BENCH := Benchmarks/.build/release/strata-bench

say = printf '==> %s\n' $(1)
# All tests at once would need some 20,000 file descriptors. A process often has 1,024.
TESTS_AT_ONCE := --experimental-maximum-parallelization-width 24
# Builds and runs the tests of a package: flags, environment, flags of the run, what is built. Prints suites, what tests
# print, and failures, these once more at the end.
run_tests = set -e -o pipefail; \
    $(2) swift build $(QUIET) $(or $(4),--build-tests) $(1); \
    $(2) swift test --skip-build --disable-xctest $(1) $(or $(3),$(TESTS_AT_ONCE)) 2>&1 | awk \
        '/^✘/ || failures && /^↳/ { failures = failures $$0 "\n" } \
        !/^◇/ && (!/^✔/ || /^✔ (Suite|Test run)/) { print; fflush() } \
        END { if (failures) printf "\nFailures once more:\n%s", failures }'

# What records writes is loaded before the C library, so it is built for Linux only.
CRASH_RUNS := .build/debug/crash-runs
RECORDER := .build/crash-recorder.so
CAN_RECORD := $(filter Linux,$(shell uname -s))
# The Swift toolchain brings a C compiler where the system has none.
RECORDER_CC := $(shell command -v cc || command -v clang || echo cc)
simulate_power_cuts = $(if $(CAN_RECORD),$(CRASH_RUNS) power $(RECORDER) .build/power-cuts states=$(1) $(2) $(CRASH_SEED),\
    echo "Power cuts are simulated on Linux only.")

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Succeeds silently when nothing is missing. Status 2: somebody has to install something by hand.
setup: ## install what is missing of LMDB, zstd, SQLite and pkg-config
	@set -eu; missing=""; libraries=""; \
	need() { pkg-config --exists "$$1" 2>/dev/null || { missing="$$missing $$2"; libraries="$$libraries $$1"; }; }; \
	command -v pkg-config >/dev/null || { missing="$$missing pkg-config"; libraries="$$libraries pkg-config"; }; \
	if [ "$$(uname -s)" = Darwin ]; then \
	    need lmdb lmdb; need libzstd zstd; need sqlite3 sqlite; install="brew install"; \
	else \
	    need lmdb liblmdb-dev; need libzstd libzstd-dev; need sqlite3 libsqlite3-dev; install="apt-get install"; \
	fi; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	as_root=""; \
	if [ "$$(id -u)" != 0 ]; then as_root=$$(command -v sudo || echo none); fi; \
	if [ "$$(uname -s)" != Darwin ] && ! command -v apt-get >/dev/null; then \
	    echo "Not found:$$libraries. Install them, libraries with their headers, with this system's package manager." >&2; exit 2; \
	fi; \
	if ! command -v apt-get >/dev/null || [ "$$as_root" = none ]; then \
	    echo "Something is missing. Install it with: $$install$$missing" >&2; exit 2; \
	fi; \
	$(call say,"Installing$$missing"); \
	$$as_root apt-get update -qq; \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null

strata-bench: setup
	@$(call say,"Building strata-bench")
	@$(NO_MACROS) swift build $(QUIET) -c release --package-path Benchmarks --product strata-bench

shootout: strata-bench ## build and run the shootout: every stack on LMDB and on SQLite
	@$(STRATA_BENCH) shootout --store lmdb,sqlite --stack all

# A separate build folder, because swift-syntax and GRDB take about ten minutes the first time.
WITH_PEERS := env -u STRATA_NO_MACROS STRATA_PEERS=1
PEERS_FLAGS := --package-path Benchmarks --scratch-path Benchmarks/.build-peers

peers: setup ## build and run the comparison of typed models with GRDB's records
	@$(call say,"Building strata-bench with macros and GRDB")
	@$(WITH_PEERS) swift build $(QUIET) -c release $(PEERS_FLAGS) --product strata-bench
	@Benchmarks/.build-peers/release/strata-bench peers

test-peers: setup ## run the tests of that comparison
	@$(call say,"Tests of the comparison with GRDB")
	@$(call run_tests,$(PEERS_FLAGS),$(WITH_PEERS))

test: setup ## run the tests of the package and of the benchmarks
	@$(call say,"Tests")
	@$(call run_tests,,STRATA_TESTS=others)
	@$(call say,"Tests of the macros")
	@$(call run_tests,,STRATA_TESTS=macros,,--product strata-macrosPackageTests)
	@$(call say,"Short run of simulated crashes")
	@$(MAKE) --no-print-directory crash-runs NO_MACROS=
	@$(call simulate_power_cuts,60,workload=saves forgets=3)
	@$(call simulate_power_cuts,420)
	@$(CRASH_RUNS) kill kills=60 $(CRASH_SEED)
	@$(call say,"A new package finds Strata by address and version")
	@$(MAKE) --no-print-directory new-package
	@if [ -d Benchmarks/Tests ]; then \
	    $(call say,"Tests of the benchmarks"); \
	    $(call run_tests,--package-path Benchmarks,$(NO_MACROS)); \
	fi

# Each example is a separate package. Server and TodoCLI need macros, Server also Hummingbird, which takes ten minutes the first time.
test-examples: setup ## build every example as its own package and run its tests
	@for example in $(notdir $(wildcard Examples/*)); do \
	    $(call say,"Example $$example"); \
	    case $$example in Server|TodoCLI) unset STRATA_NO_MACROS;; *) export $(NO_MACROS);; esac; \
	    if [ -d Examples/$$example/Tests ]; then $(call run_tests,--package-path Examples/$$example); \
	    else swift build $(QUIET) --package-path Examples/$$example || exit 1; fi; \
	done
	@$(call say,"A new package with Strata by address and version")
	@$(MAKE) --no-print-directory run-new-package

# The package of README.md with its example. It depends on Strata as a user's package does, by address and version. The address is that of a
# clone of the last commit, and its tag is the version. The package manager takes a tag for one that does not move.
NEW_PACKAGE := .build/new-package
new-package:
	@set -eu; if [ ! -e .git ]; then echo "Left out: this is no clone of the repository."; exit 0; fi; \
	dependency=$$(grep -o '\.package(url: "<address>".*))' README.md); \
	version=$$(echo "$$dependency" | sed 's/.*from: "\([0-9.]*\)".*/\1/'); \
	mkdir -p $(NEW_PACKAGE)/music/Sources/music; cd $(NEW_PACKAGE); rm -rf strata; \
	git clone --quiet --bare --no-tags ../.. strata; git -C strata tag "$$version"; commit=$$(git -C strata rev-parse HEAD); \
	cd music; grep -qs "$$commit" Package.resolved \
	    || rm -rf Package.resolved .build/workspace-state.json .build/repositories/strata-*; \
	awk '/^\/\/ swift-tools-version/ { shown = 1 } /^```$$/ { shown = 0 } shown' ../../../README.md \
	    | sed "s|\.package(path: .*)\]|$${dependency/<address>/file://$${PWD%/*}/strata}]|" > Package.swift; \
	awk '/^```$$/ { exit } shown { print } /^```swift$$/ { shown = 1 }' ../../../README.md > Sources/music/Recording.swift; \
	printf '%s\n' 'import Foundation' 'let file = URL(filePath: CommandLine.arguments[1])' \
	    'print(try await importAndFetch(file: file).joined(separator: ", "))' > Sources/music/main.swift; \
	env -u STRATA_NO_MACROS swift package resolve >resolve.log 2>&1 || { cat resolve.log; exit 1; }; \
	grep -q "$$commit" Package.resolved || { echo "The package has not found $$commit:"; cat resolve.log; exit 1; }

run-new-package: new-package
	@set -eu; if [ ! -e .git ]; then exit 0; fi; cd $(NEW_PACKAGE)/music; \
	env -u STRATA_NO_MACROS swift build $(QUIET); rm -rf .build/music.strata*; \
	found=$$(.build/debug/music .build/music.strata); \
	test "$$found" = "Track 1000, Track 999" || { echo "The example of README.md has found: $$found" >&2; exit 1; }

# LOAD holds options of the program: LOAD="--clients 32 --deferred".
server-load: setup ## load the example server, check its data and snapshots (LOAD=options)
	@$(call say,"Building the example server")
	@env -u STRATA_NO_MACROS swift build $(QUIET) -c release --package-path Examples/Server
	@Examples/Server/.build/release/server-load $(LOAD)

test-long: setup ## run the tests with long random runs and many crashes
	@$(call say,"Tests with long runs")
	@$(call run_tests,,STRATA_LONG=1 STRATA_TESTS=others)

# LAYERS names a folder of clones. Without it, git fetches twenty repositories from github.com.
test-layers: setup ## round-trip data of public SwiftData models on each store (LAYERS=folder)
	@$(call say,"Public model layers")
	@LAYERS="$(LAYERS)" Tests/ModelLayers/run.sh

# The package's own products are built by the tests already.
crash-runs:
	@$(NO_MACROS) swift build $(QUIET) --product crash-runs
	@$(if $(CAN_RECORD),$(RECORDER_CC) -O2 -Wall -shared -fPIC -o $(RECORDER) Tests/CrashRuns/recorder.c -ldl -lpthread)

test-power: setup crash-runs ## simulate 10,000 power cuts (POWER_STATES=n, SEED=n)
	@$(call say,"Simulated power cuts")
	@$(call simulate_power_cuts,120,workload=saves forgets=3)
	@$(call simulate_power_cuts,$(POWER_STATES))

test-kill: setup crash-runs ## kill 10,000 processes that save, one or two on a file (KILLS=n, SEED=n)
	@$(call say,"Kills")
	@$(CRASH_RUNS) kill kills=$(KILLS) $(CRASH_SEED)

# The sanitizer maps memory beside each map of a file. With all tests at once, the system has no mappings left.
# Compiled with -O as in a release build, but with assertions. The build takes several times as long as that of `make test`.
test-optimized: setup ## run the tests compiled with -O
	@$(call say,"Optimized tests")
	@$(call run_tests,--scratch-path .build-optimized -Xswiftc -O -Xswiftc -assert-config -Xswiftc Debug,STRATA_TESTS=others)

test-tsan: setup ## run the tests under the thread sanitizer
	@$(call say,"Races of the runtime that are none")
	@Tests/sanitizer-faults.sh thread
	@$(call say,"Tests under the thread sanitizer")
	@$(call run_tests,--sanitize=thread --scratch-path .build-tsan,STRATA_TESTS=others STRATA_THREAD_SANITIZER=1,\
	    --experimental-maximum-parallelization-width 12)

# Always without XCTest: its runner leaks, which would fail the run. With all tests at once, each lasts longer than the limits that end
# tests which hang.
test-asan: setup ## run the tests under the address sanitizer
	@$(call say,"Leaks of Swift and Foundation")
	@Tests/sanitizer-faults.sh address
	@$(call say,"Tests under the address sanitizer")
	@$(call run_tests,--sanitize=address --scratch-path .build-asan,\
	    STRATA_TESTS=others LSAN_OPTIONS="suppressions='$(CURDIR)/Tests/leaks.txt':print_suppressions=0",\
	    --experimental-maximum-parallelization-width 12)

# Two --sanitize flags give one of the two; a crash with backtraces on hangs for minutes.
fuzz: setup ## run every fuzz target for 60 s (FUZZ_SECONDS=n)
	@$(call say,"Building the fuzz targets")
	@cd fuzz && $(NO_MACROS) swift build $(QUIET) -c release --sanitize=fuzzer -Xswiftc -sanitize=address,fuzzer
	@set -eu; cd fuzz; for target in $$(grep -lr LLVMFuzzerTestOneInput Sources | cut -d/ -f2 | sort -u); do \
	    corpus=.build/corpus/$$target; mkdir -p $$corpus; \
	    $(call say,"$$target for $(FUZZ_SECONDS) s"); \
	    SWIFT_BACKTRACE=enable=no .build/release/$$target -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=512 \
	        -print_final_stats=1 -artifact_prefix=.build/$$target- $$corpus >.build/$$target.log 2>&1 \
	        || { tail -n 60 .build/$$target.log; exit 1; }; \
	    awk -F ': +' '/^stat::(number|peak)/ { sub("stat::", "", $$1); print "    " $$1 ": " $$2 }' .build/$$target.log; \
	done

bench: strata-bench ## run every benchmark but peers at its default size
	@set -eu; for benchmark in shootout stall chat storage children undo observation scale readers saves compaction; do \
	    $(call say,"strata-bench $$benchmark"); $(STRATA_BENCH) $$benchmark; \
	done

# CHINOOK=file and FLIGHTS=folder name real data; without them those runs are left out. Takes half an hour, the flights most of it; leave the machine alone.
figures: strata-bench ## measure every table of Benchmarks/Results but compaction and peers
	@set -eu; out=Benchmarks/.build/figures; results=Benchmarks/Results/$$(date +%F)-$$(uname -m)-$$(getconf _NPROCESSORS_ONLN)-cores; \
	mkdir -p $$out $$results; chinook="$(CHINOOK)"; flights="$(FLIGHTS)"; \
	measure() { name=$$1; shift; $(call say,"strata-bench $$*"); \
	    { words="$$*"; words=$${words/"$$chinook"/CHINOOK}; printf '`strata-bench %s`\n\n' "$${words/"$$flights"/FLIGHTS}"; \
	      $(STRATA_BENCH) "$$@" --quiet --markdown --json $$out/$$name.json --html $$out/$$name.html; } > $$out/$$name.md 2> $$out/$$name.log; \
	    cp $$out/$$name.md $$results/$$name.md; }; \
	measure shootout shootout --repeat 5; \
	measure shootout-deferred shootout --repeat 5 --durability deferred; \
	measure stall stall --repeat 5; measure chat chat --repeat 5; \
	measure storage storage --repeat 5; measure storage-deferred storage --repeat 5 --durability deferred; \
	measure storage-million storage --repeat 3 --objects 1000000; \
	measure storage-million-deferred storage --repeat 3 --objects 1000000 --durability deferred; \
	measure children children --repeat 5 --store lmdb; measure undo undo --repeat 5; \
	measure observation observation --repeat 5; \
	measure scale scale --store lmdb --repeat 1 --durability deferred --objects 10000000; \
	measure readers readers --repeat 3; measure saves saves --repeat 3; \
	if [ -n "$$chinook" ]; then measure chinook shootout --repeat 3 --input "$$chinook"; fi; \
	if [ -n "$$flights" ]; then \
	    measure flights shootout --repeat 1 --routing snapshot --input "$$flights"; \
	    measure flights-ancestors shootout --repeat 1 --store sqlite --routing ancestors --input "$$flights"; \
	fi

# In groups of files, because `--parallel` opens all at once, which is more than a shell usually allows.
FORMAT = find $(SOURCES) -name '*.swift' -not -path '*/.*' -print0 | xargs -0 -n 200 -P "$$(getconf _NPROCESSORS_ONLN)" swift format

format: ## format all sources
	@$(FORMAT) --in-place

lint: ## check the format of all sources
	@$(FORMAT) lint --strict

# Sorts the modules of the first page, which DocC lists by name, and those of the list beside every page. Left out where Python is missing.
define ORDER_OF_MODULES
import json, sys
site, order = sys.argv[1], [module.lower() for module in sys.argv[2:]]
def sort(file, lists, name):
    with open(f"{site}/{file}") as source: content = json.load(source)
    for entries in lists(content): entries.sort(key=lambda entry: order.index(name(entry).split("/")[-1].lower()))
    with open(f"{site}/{file}", "w") as target: json.dump(content, target)
sort("data/documentation.json", lambda page: [page["topicSections"][0]["identifiers"]], lambda link: link)
sort("index/index.json", lambda index: [index["interfaceLanguages"]["swift"][0]["children"]], lambda entry: entry["path"])
endef
export ORDER_OF_MODULES

# One site, so that the pages of one module can link to those of another. Quiet, because a dependency has files that its manifest does not
# declare, and the package manager would warn of them.
docs: setup ## build the documentation as one site, warnings as errors
	@$(call say,"Documentation of $(DOCUMENTED)")
	@STRATA_DOCS=1 swift package --quiet --allow-writing-to-directory $(SITE) generate-documentation $(DOCUMENTED:%=--target %) \
	    --enable-experimental-combined-documentation --warnings-as-errors --output-path $(SITE)
	@if command -v python3 >/dev/null; then python3 -c "$$ORDER_OF_MODULES" $(SITE) $(DOCUMENTED); fi

docs-serve: docs ## build the documentation and show it at http://localhost:8080 (PORT=n)
	@$(call say,"http://localhost:$(PORT)/documentation/")
	@python3 -m http.server --bind localhost --directory $(SITE) $(PORT)

# The plugin of the same name would build everything once more, for release.
man: setup ## write the manual page of strata, .build/man/strata.1
	@$(call say,"Manual page")
	@swift build $(QUIET) --product strata
	@swift build $(QUIET) --product generate-manual
	@mkdir -p .build/man
	@.build/debug/generate-manual --date $$(date +%F) --output-directory .build/man .build/debug/strata
	@ls .build/man/strata.1

# Needs Chromium.
screenshots: setup ## write the pictures of the page of strata studio into Docs/Images
	@$(call say,"Pictures")
	@STRATA_SCREENSHOTS=Docs/Images swift test $(QUIET) --disable-xctest --filter ScreenshotTests
	@ls -l Docs/Images

clean: ## remove everything that was built
	@rm -rf .build .build-optimized .build-tsan .build-asan Benchmarks/.build Benchmarks/.build-peers fuzz/.build Examples/*/.build
