# Penstock. `make help` lists what there is; the work is done by scripts in hack.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Shown by `penstock version`. Without git (a source archive) Go's own build
# information takes its place.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
# What is built has these, and what is tested, too.
export GOFLAGS := $(GOFLAGS) -tags=$(shell cat hack/tags)
export CGO_ENABLED ?= 0
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Try it

.PHONY: demo
demo: build tools ## Watch it work on a real control plane; FROM=dir TO=dir NAME=x for your manifests, KEEP=1 to keep it
	@PENSTOCK_TOOLS="$$(hack/build-tools.sh)" FROM="$(FROM)" TO="$(TO)" NAME="$(NAME)" KEEP="$(KEEP)" go run ./test/demo

.PHONY: cluster-up
cluster-up: ## Start a Kubernetes control plane on this machine; prints the export of KUBECONFIG
	@go run ./hack/cluster up

.PHONY: cluster-down
cluster-down: ## End it and remove all it left
	@go run ./hack/cluster down

##@ Build

.PHONY: build
build: ## Build bin/penstock and the plugin, bin/kubectl-penstock
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: image
image: ## Build the image for linux/amd64 and arm64, a layout of the OCI in bin/image; 15 minutes the first time; PLATFORMS=linux/amd64 for one
	@go run ./hack/release image -version "$(VERSION)" -out bin/image -platforms "$(PLATFORMS)"

.PHONY: release
release: ## Make a release in bin/release: archives, checksums, bills of materials, image, chart, manifest of krew, notes; VERSION=v1.2.3, PLATFORMS=linux/amd64 for some
	@go run ./hack/release all -version "$(VERSION)" -out bin/release -platforms "$(PLATFORMS)"

.PHONY: tools
tools: ## Build the control plane's programs into a cache outside the checkout, once
	@hack/build-tools.sh >/dev/null

.PHONY: generate
generate: ## Generate the code that is derived from pkg/apis
	hack/update-codegen.sh

.PHONY: clean
clean: ## Remove bin and end what cluster-up started; the caches stay
	@go run ./hack/cluster down
	rm -rf bin

##@ Test

.PHONY: test test-all test-slice
test: ## Static checks, unit tests and test/smoke
	@hack/test.sh

test-all: ## The same and all suites on real control planes
	@hack/test.sh verify unit smoke suites

test-slice: ## What takes longer, N=race and others; without N it lists them
	@hack/test-slice.sh $(N)

.PHONY: bench-reads
bench-reads: tools ## Measure reads beside custom resources on a real control plane, 8 minutes; FULL=1 for more of it, 25 minutes; PROFILE=<folder> for profiles
	@cd test/bench && BENCH=reads FULL="$(FULL)" PROFILE="$(abspath $(PROFILE))" PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestReads$$' -count 1 -v -timeout 2h ./reads

.PHONY: bench-memory
bench-memory: tools ## Measure memory at rest, empty, filled and restarted with 5,000 revisions, 10 minutes; FULL=0 with 300, REVISIONS=<n> with others; PROFILE=<folder> for heaps
	@cd test/bench && BENCH=memory FULL="$(FULL)" PROFILE="$(abspath $(PROFILE))" PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestMemory$$' -count 1 -v -timeout 2h ./reads

.PHONY: bench-rollout
bench-rollout: tools ## Measure rolling out beside Helm's SDK, kubectl and a plain loop, 8 minutes; FULL=1 for the matrix, hours; PROFILE=<folder> for heaps at rest
	@cd test/bench && BENCH=rollout FULL="$(FULL)" PROFILE="$(abspath $(PROFILE))" PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestRollout$$' -count 1 -v -timeout 6h ./rollout

.PHONY: bench-cost
bench-cost: tools ## Measure what a revision takes of the processor, 3 minutes; EXTENSIONS=<n>; PROFILE=<folder> for profiles
	@cd test/bench && BENCH=cost EXTENSIONS="$(EXTENSIONS)" PROFILE="$(abspath $(PROFILE))" PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestRevisionCost$$' -count 1 -v -timeout 1h ./rollout

.PHONY: bench-limit
bench-limit: tools ## Install and upgrade 100 extensions without a limit of memory, and as in containers of 128 and 96 MiB, 3 minutes
	@cd test/bench && BENCH=limit PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestMemoryLimit$$' -count 1 -v -timeout 1h ./rollout

.PHONY: bench-scale
bench-scale: tools ## Measure one process with 1,000 extensions of 4 objects and 5 revisions, 6 minutes; FULL=1 with 10,000, 40 minutes; EXTENSIONS=<n>; PROFILE=<folder> for heaps
	@cd test/bench && BENCH=scale FULL="$(FULL)" EXTENSIONS="$(EXTENSIONS)" PROFILE="$(abspath $(PROFILE))" PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestScale$$' -count 1 -v -timeout 7h ./rollout

.PHONY: bench-extensions
bench-extensions: tools ## Measure ClusterExtensions from one catalog beside plain revisions and Helm's SDK, 7 minutes; FULL=1 for 1,000 of them, FULL=0 for 10; PROFILE=<folder> for profiles
	@cd test/bench && BENCH=extensions FULL="$(FULL)" PROFILE="$(abspath $(PROFILE))" PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestExtensions$$' -count 1 -v -timeout 2h ./rollout

.PHONY: bench-chartkinds
bench-chartkinds: tools ## Measure custom resources with a chart whose workloads come and go, beside an operator with Helm's SDK, 4 minutes; FULL=1 for 100 of them, FULL=0 for 3
	@cd test/bench && BENCH=chartkinds FULL="$(FULL)" PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestChartKinds$$' -count 1 -v -timeout 1h ./rollout

.PHONY: bench-webhooks
bench-webhooks: tools ## Measure the webhooks beside one that does nothing, and what policies take in kube-apiserver, 4 minutes
	@cd test/bench && BENCH=webhooks PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^Test(Webhooks|Policies)$$' -count 1 -v -timeout 30m ./webhooks

.PHONY: bench-hostile
bench-hostile: tools ## Measure the worst that somebody without rights can send, and the worst expressions, 3 minutes
	@cd test/bench && BENCH=hostile PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestHostile$$' -count 1 -v -timeout 1h ./hostile

.PHONY: bench-console
bench-console: tools ## Measure the console with 1,000 extensions and 5,000 revisions in a browser, 8 minutes; with FULL=1 over an hour
	@cd test/console && BENCH=console PENSTOCK_TOOLS="$$(../../hack/build-tools.sh)" go test -run '^TestScale$$' -count 1 -v -timeout 90m .

.PHONY: bench-store
bench-store: ## Measure what revisions of real operators take in the store, writing, reading and collecting them, 5 minutes
	@cd test/bench && BENCH=store go test -p 1 -run '^Test(Store|Collection)$$' -count 1 -v -timeout 1h ./store ./collection

.PHONY: bench
bench: ## Run the benchmarks
	go test -run '^$$' -bench . -benchmem $$(git grep -l 'func Benchmark' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's|^|./|')
