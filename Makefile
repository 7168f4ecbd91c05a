# Sidetone: `make run` serves, `make demo` fills it, `make test` is what CI runs.
.NOTPARALLEL:
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Without cgo the binary is static. The race detector alone needs it.
export CGO_ENABLED := 0

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
FUZZTIME ?= 30s
BENCH ?= .
BENCHTIME ?=
URL ?= http://localhost:9090

# The dashboard is built when it is there and when one of its sources is newer than the last build.
UI := $(if $(wildcard web/package.json),internal/webui/dist/index.html)
UI_SOURCES := $(if $(UI),$(shell find web -name node_modules -prune -o -type f ! -name '*.test.*' -print))

# Unit tests of the dashboard and its browser tests, where there are any.
WEB_TESTS := $(if $(UI),$(if $(shell find web/src -name '*.test.*' 2>/dev/null),test) $(if $(wildcard web/e2e/*.test.*),e2e))

say = @printf '==> %s\n' "$(1)"

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1|\2/p' Makefile | column -t -s '|'

.PHONY: run
run: ui build ## build everything and serve on port 9090 with SQLite in data/
	DATABASE_URL=$${DATABASE_URL:-sqlite:./data/sidetone.db} bin/sidetone serve

.PHONY: demo
demo: build ## send sample calls to the server at URL (http://localhost:9090)
	bin/sidetone demo --url $(URL)

.PHONY: build
build: ## build bin/sidetone, one static binary
	$(call say,building bin/sidetone $(VERSION))
	@go build -ldflags '-X main.version=$(VERSION)' -o bin/sidetone ./cmd/sidetone

.PHONY: ui
ui: $(UI) ## build the dashboard into internal/webui/dist

internal/webui/dist/index.html: $(UI_SOURCES)
	$(call say,building the dashboard)
	@scripts/npm-ci web
	@npm run --prefix web build
	@touch $@

.PHONY: test
test: deps ui lint build ## check and test everything, with the race detector, on SQLite and a private PostgreSQL
	$(call say,testing)
	@CGO_ENABLED=1 scripts/with-postgres go test -race -timeout 15m ./...
	@for script in $(WEB_TESTS); do printf '==> testing the dashboard: %s\n' $$script; npm run --silent --prefix web $$script; done
	$(call say,all good)

.PHONY: deps
deps: ## install what the tests need (PostgreSQL, gcc, Chromium, npm packages)
	@scripts/install-deps

.PHONY: lint
lint: ## gofmt and go vet
	$(call say,gofmt and go vet)
	@unformatted=$$(gofmt -l cmd internal); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted"; exit 1; }
	@go vet ./...

.PHONY: bench
bench: ## measure the program on both engines; BENCH=Ingest picks, BENCHTIME=4000x sets how long
	@scripts/with-postgres go test -run '^$$' -bench '$(BENCH)' $(if $(BENCHTIME),-benchtime $(BENCHTIME)) -timeout 3h ./internal/bench

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s) each
	@scripts/fuzz $(FUZZTIME)

.PHONY: clean
clean: ## remove what the build made; data/ stays
	rm -rf bin
	find internal/webui/dist -mindepth 1 ! -name .gitkeep -delete
