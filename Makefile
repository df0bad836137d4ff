# A fresh machine needs Go and git; `make race` also needs a C compiler.
.DEFAULT_GOAL := help

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# ARGS goes to the command that a verb runs: make demo ARGS="--size 1GB --updates 5".
ARGS    ?=
# PKG limits test, race, bench and fuzz: make test PKG=./mesh/...
PKG     ?= ./...
# FUZZTIME is how long each fuzz target runs.
FUZZTIME ?= 5s
# SEEDS and FIRST say which seeds sim runs; a failing one runs alone with SEEDS=1.
SEEDS   ?= 100
FIRST   ?= 1
# LINTER runs by version, so that it never enters go.mod. The first run compiles it, which takes some minutes.
LINTER  ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

export CGO_ENABLED := 0

.PHONY: help
help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# VCS stamping is off because it fails in a checkout that another user owns; the version below serves instead.
.PHONY: build
build: ## build bin/sparsecast
	$(GO) build -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o bin/sparsecast ./cmd/sparsecast

.PHONY: demo
demo: build ## build, then show a trainer and rollout nodes at work on this machine
	bin/sparsecast demo $(ARGS)

.PHONY: test
test: ## run all tests
	$(GO) test -timeout 30m $(ARGS) $(PKG)

.PHONY: race
race: ## run the short tests under the race detector
	CGO_ENABLED=1 $(GO) test -race -short -timeout 30m $(ARGS) $(PKG)

# An arm64 processor needs no qemu, and runs these among all tests.
.PHONY: arm64
arm64: ## run the tests of the codec's kernels for arm64 under qemu-user
	GOARCH=arm64 $(GO) test -exec qemu-aarch64-static -run 'Kernel|Golden|EdgeCases|RoundTrip' $(ARGS) ./delta

.PHONY: verify
verify: ## check formatting, go.mod, vet, lint and shell scripts
	@echo gofmt; unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "run gofmt -w on:" $$unformatted; exit 1; }
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(LINTER) run ./...
	@if command -v shellcheck >/dev/null; then echo shellcheck; \
	grep -rlE --exclude-dir=.git --exclude-dir=bin '^#!(/bin/|/usr/bin/env )(ba)?sh' . | xargs -r shellcheck; \
	else echo "shellcheck is not installed: scripts stay unchecked"; fi

.PHONY: bench
bench: ## run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem $(ARGS) $(PKG)

.PHONY: bench-huge
bench-huge: ## take a tensor of more than 2^32 elements through diff and apply
	$(GO) test ./cmd/sparsecast -run TestHuge -v -timeout 30m $(ARGS) -huge

.PHONY: fuzz
fuzz: ## fuzz each target for FUZZTIME (5s)
	@set -e; for pkg in $$($(GO) list $(PKG)); do \
	  targets=$$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); \
	  for target in $$targets; do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; \
	done

.PHONY: sim
sim: ## simulate whole nodes on bad days, SEEDS of them (100) from FIRST (1) on
	$(GO) run ./scripts/sim -seeds $(SEEDS) -first $(FIRST) $(ARGS)

.PHONY: plants
plants: ## see that the simulation finds every planted bug (takes long)
	$(GO) test ./scripts/sim -run TestPlants -plants -timeout 60m -v

.PHONY: clean
clean: ## remove what the other verbs leave behind
	rm -rf bin out.json
	find . -name '*.test' -type f -delete
	find . -name '*.prof' -type f -delete
