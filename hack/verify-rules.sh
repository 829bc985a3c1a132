#!/usr/bin/env bash
# Fails when an alert of artifacts/monitoring does not fire, or stay silent, as its
# tests say. They are evaluated by Prometheus' own engine, pinned in hack/tools/rules
# and compiled into the cache of tools on first use.
#
# inputs: artifacts/monitoring hack/tools/rules
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hash="$(cat hack/tools/rules/go.mod hack/tools/rules/go.sum hack/tools/rules/*.go | git hash-object --stdin | cut -c1-12)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/rules-${hash}-$(go env GOVERSION)"
if [ ! -x "${cache}/rules" ]; then
	echo "building the tester of alerts, usually 1 min" >&2
	mkdir -p "${cache}"
	(cd hack/tools/rules && GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0 go build -o "${cache}/.rules.$$" .)
	mv "${cache}/.rules.$$" "${cache}/rules"
fi
"${cache}/rules" artifacts/monitoring/tests/*.yaml
