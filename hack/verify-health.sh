#!/usr/bin/env bash
# Fails if Argo CD, Flux or kstatus disagree with the tests of artifacts/gitops about the health of
# an object. The tester is pinned in hack/tools/health and compiled into the cache of tools on first
# use.
#
# inputs: artifacts/gitops hack/tools/health
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hash="$(cat hack/tools/health/go.mod hack/tools/health/go.sum hack/tools/health/*.go | git hash-object --stdin | cut -c1-12)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/health-${hash}-$(go env GOVERSION)"
if [ ! -x "${cache}/health" ]; then
	echo "building the tester of health checks, usually 1 min" >&2
	mkdir -p "${cache}"
	(cd hack/tools/health && GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0 go build -o "${cache}/.health.$$" .)
	mv "${cache}/.health.$$" "${cache}/health"
fi
"${cache}/health" artifacts/gitops
