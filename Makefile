# `make` lists the targets. None is needed to build or test: see the README for the two commands.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 freebsd/amd64

.PHONY: help build test lint bench golden check release fuzz sim mutate

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build ./mcpdoctor, a static binary
	CGO_ENABLED=0 $(GO) build -trimpath -o mcpdoctor ./cmd/mcpdoctor

test: ## run all tests, the lab too where node and npm are
	$(GO) test ./...

lint: ## gofmt and vet, on every system
	@test -z "$$(gofmt -l cmd report rules scan testdata)" || { gofmt -l cmd report rules scan testdata; exit 1; }
	@for os in linux darwin windows freebsd; do echo "vet $$os"; GOOS=$$os $(GO) vet ./... ./testdata/tables ./testdata/scripts/... || exit 1; done

bench: ## speed and memory, each against another command in the same run
	$(GO) test -run '^$$' -bench . -benchmem ./scan/... ./rules/... ./report
	$(GO) test -run '^$$' -bench Command -benchtime 1x ./cmd/mcpdoctor

golden: ## write the golden output, the rule table of the README and the drawing of the rooms anew; read the difference before you commit it
	$(GO) test ./report ./cmd/mcpdoctor -run 'Golden|Rooms' -update

fuzz: ## every fuzz target for 20 seconds
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 20s $$pkg || exit 1; done; done

mutate: ## take each safety check of a reap out, and demand that its test fails (a minute or two)
	$(GO) run ./testdata/scripts/mutate

sim: ## the simulation of reap on 200,000 worlds
	$(GO) test ./cmd/mcpdoctor -run 'TestSimulation$$' -count 1 -v -timeout 60m -sim.worlds 200000

check: lint ## lint, and all tests with the race detector
	$(GO) test -race ./...

release: ## static binaries for every system, in dist/
	@mkdir -p dist
	@for t in $(TARGETS); do os=$${t%/*}; arch=$${t#*/}; ext=; [ $$os = windows ] && ext=.exe; \
	  echo "dist/mcpdoctor-$$os-$$arch$$ext"; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags "-s -w -X main.release=$(VERSION)" \
	    -o dist/mcpdoctor-$$os-$$arch$$ext ./cmd/mcpdoctor || exit 1; done
	@cd dist && sha256sum mcpdoctor-* > SHA256SUMS
