# SPDX-License-Identifier: MIT
# A thin front to meson: `make` builds, `make check` and `make test` test, `make help` lists the rest.

BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20

.DEFAULT_GOAL := build
.PHONY: build golden setup setup-test setup-vm check test test-all test-unit test-e2e test-bindings test-escape test-vm-quick test-vm test-vm-all test-slow test-web test-fresh test-packages bench wheel gem deb dist format lint fuzz run sbom security-scan vulncheck claude-image claude-runtime install uninstall ci clean help

build: setup ## build brig, the server and the library into $(BUILD)
	@tools/build $(BUILD) -- programs

setup: ## install what building needs, if it is missing (Debian, Ubuntu)
	@tools/setup build server

setup-test: ## install what the tests need, if it is missing
	@tools/setup build server test

setup-vm: setup-test ## install what the tests in virtual machines need, if it is missing
	@tools/setup vm

check: setup-test ## after every change: golden and unit tests, a jail in every mode; a minute once it is built
	@tests/run check

# Virtual machines and Debian roots are only for root: without it these tests are skipped.
test: setup-test ## before every push: check, end to end, bindings, escapes, quick lint, a virtual machine, fresh roots
	@[ "$$(id -u)" -ne 0 ] || tools/setup vm
	@tests/run test

test-web: setup-test ## the page of brigd in Chromium
	@tools/setup web
	@tests/run e2e/server_web

test-all: setup-test ## everything except test-vm, test-fresh and test-slow: every test in every variant, all of lint, longer fuzzing
	@tools/setup web images
	@[ "$$(id -u)" -ne 0 ] || tools/setup vm
	@FUZZ_SECONDS=$(FUZZ_SECONDS) BRIG_THOROUGH=1 tests/run all

test-unit: setup-test ## the unit tests, in the release and the sanitizer builds, as root, a user and in a namespace
	@tests/run unit

golden: setup-test ## update tests/golden from the current output; review it with git diff
	@tools/build $(BUILD) -- programs tests/probe/look
	@BUILD_DIR=$(BUILD) tests/golden/run --write

test-e2e: setup-test ## the end-to-end tests
	@tests/run e2e

test-bindings: setup-test ## the tests of the Python and Ruby bindings
	@tests/run bindings

test-escape: setup-test ## the escape attempts
	@tests/run escape

test-vm-quick: setup-vm ## what differs most between machines, with kernel 6.12 and cgroup v2
	@tests/run vm-quick

test-vm: setup-vm ## every test in virtual machines with kernel 6.12 and cgroup v2
	@tests/run vm

test-vm-all: setup-vm ## the same with kernels 6.1, 6.12, that of Debian 13 and the newest two, and with 1 and 16 CPUs
	@VM_KERNELS='stable bpo trixie next rc' tests/run vm vm-cpus

test-slow: setup-test ## brigd with a root directory that debootstrap makes, and the AppArmor profile in a virtual machine: downloads some 100 MB once
	@tests/run slow

test-fresh: ## the README's commands in an empty Debian 12 and 13, and the build and unit tests on the other architecture: downloads some 500 MB once (as root)
	@tools/setup fresh other-arch
	@tests/run fresh

test-packages: ## the Debian packages and the archive of make dist: built twice, packages also for the other architecture, installed, upgraded and removed in an empty Debian 12 and 13: downloads some 500 MB (as root)
	@tools/setup fresh
	@tests/run packages

lint: setup-test ## every static check
	@tests/run lint

fuzz: setup-test ## each fuzz target for FUZZ_SECONDS
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run fuzz

format: setup-test ## format every C file
	@tools/format

bench: build ## how long a launch takes, beside others
	@bench/launch

wheel: build ## build a wheel of the Python package that carries libbrig.so, into WHEELS ($(BUILD)/wheels)
	@tools/wheel $(BUILD) $(or $(WHEELS),$(BUILD)/wheels)

gem: build ## build a gem of the Ruby package that carries libbrig.so, into GEMS ($(BUILD)/gems)
	@tools/gem $(BUILD) $(or $(GEMS),$(BUILD)/gems)

deb: setup ## build Debian packages of the programs, the library, and Python's and Ruby's, into DEBS ($(BUILD)/debs)
	@tools/setup deb
	@tools/deb $(or $(DEBS),$(BUILD)/debs)

dist: setup ## build an archive of static programs, npm packages and a wheel, with checksums, into DIST ($(BUILD)/dist); DIST_KEY=FILE signs them
	@tools/setup dist
	@tools/dist $(or $(DIST),$(BUILD)/dist)

run: setup ## start brigd, the server, on 127.0.0.1:8080
	@tools/build $(BUILD) -Dserver=enabled -- src/server/brigd src/net/brig-broker src/client/brigctl src/callback/brig-callback \
	    src/zygote/brig-zygote.so
	@exec $(BUILD)/src/server/brigd

sbom: build ## write an SPDX document about the programs and their libraries, to SBOM ($(BUILD)/brig.spdx.json)
	@tools/sbom $(BUILD) > $(or $(SBOM),$(BUILD)/brig.spdx.json)
	@echo $(or $(SBOM),$(BUILD)/brig.spdx.json)

security-scan: setup-test build ## static checks that concern security: analyzers, hardening, credentials in files; offline, minutes
	@tools/security-scan

vulncheck: build ## compare the libraries with apt's package lists; offline: says what it cannot know
	@tools/vulncheck $(BUILD)

claude-image: claude-runtime ## the same as claude-runtime: brigd has root directories where others have images

claude-runtime: ## install Claude Code with Node into a root directory for brigd (DIR, as root)
	@tools/claude-runtime $(DIR)

install: setup ## build and install under PREFIX (and DESTDIR)
	@tools/install $(BUILD) "$(PREFIX)"

uninstall: ## remove what make install has put under PREFIX (and DESTDIR)
	@tools/uninstall "$(PREFIX)"

ci: ## what continuous integration runs
	@.ci/run

clean: ## remove what was built
	rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | sed 's/$$(BUILD)/$(BUILD)/' | expand -t 16
