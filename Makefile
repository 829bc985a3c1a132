# Penstock. `make help` lists the targets; scripts in hack do the work.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# `penstock version` prints this. Without git (a source archive), it prints Go's own build
# information.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
# Builds and tests use the same flags.
export GOFLAGS := $(GOFLAGS) -trimpath -tags=$(shell cat hack/tags)
export CGO_ENABLED ?= 0
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Try it

.PHONY: demo
# The program is built before the tools: two concurrent go commands would compile shared packages
# twice.
demo: build tools ## Watch it work; FROM=dir TO=dir NAME=x for your manifests, KEEP=1 keeps it, FLEET=1 many clusters
	@echo "building the demonstration" >&2
	@PENSTOCK_TOOLS="$$(hack/build-tools.sh)" FROM="$(FROM)" TO="$(TO)" NAME="$(NAME)" KEEP="$(KEEP)" FLEET="$(FLEET)" go run ./test/demo

.PHONY: cluster-up
cluster-up: ## Start a control plane on this machine; NODE=real has a kubelet and containers
	@echo "Starting a Kubernetes control plane in .local/cluster; the first time, its programs are built from source" >&2
	@[ -n "$$PENSTOCK_TOOLS" ] || hack/build-tools.sh >/dev/null
	@go run ./hack/cluster $(if $(NODE),-node $(NODE)) up

.PHONY: cluster-load
cluster-load: ## Give the real node the image of bin/image: IMAGE=registry.example.com/penstock:v0.1.0
	@go run ./hack/cluster load bin/image "$(IMAGE)"

.PHONY: cluster-down
cluster-down: ## Stop it and remove its files
	@go run ./hack/cluster down

##@ Build

.PHONY: build
build: ## Build bin/penstock and the plugin, bin/kubectl-penstock
	@hack/compile.sh "bin/penstock, bin/kubectl-penstock" -ldflags '$(LDFLAGS)' -o bin/ -- ./cmd/...

.PHONY: image
image: ## Build the image into bin/image; PLATFORMS=linux/amd64 for one platform
	@go run ./hack/release image -version "$(VERSION)" -out bin/image -platforms "$(PLATFORMS)"

.PHONY: release release-test
release: ## Make a release in bin/release; VERSION=v1.2.3, KEY=cosign.key signs it
	@go run ./hack/release all -version "$(VERSION)" -out bin/release -platforms "$(PLATFORMS)" -key "$(KEY)" -pgp-key "$(PGP_KEY)"

release-test: ## Install RELEASE=folder from its files alone, also on a real node; KEY=penstock.pub verifies it
	@hack/release-test.sh "$(RELEASE)"

.PHONY: tools
tools: ## Build kube-apiserver, etcd and kubectl into a cache, once
	@hack/build-tools.sh >/dev/null

.PHONY: generate
generate: ## Generate the code that is derived from pkg/apis
	hack/update-codegen.sh

.PHONY: clean
clean: ## Remove bin and stop what cluster-up started
	@go run ./hack/cluster down
	rm -rf bin

##@ Test

.PHONY: test test-all test-slice node-test
test: ## Static checks, unit tests and test/smoke
	@hack/test.sh

test-all: ## The same and all suites on real control planes
	@hack/test.sh verify unit smoke suites test/node

test-slice: ## What takes longer, N=race and others; without N it lists them
	@hack/test-slice.sh $(N)

node-test: ## Tests on a real node: kubelet, containerd, kube-proxy; needs Linux and root
	@hack/test-slice.sh node-causes node-installed node-operator

.PHONY: lint vulncheck
lint: ## Run golangci-lint, with the rules of .golangci.yml
	@hack/verify-lint.sh

vulncheck: ## Known vulnerabilities of the code and its modules; VULNDB=URL of the database
	@hack/vulncheck.sh

.PHONY: bench
bench: ## Measure SUITE=reads and others; without SUITE it lists them
	@hack/bench.sh $(SUITE)
