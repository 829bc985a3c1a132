#!/usr/bin/env bash
# Fails when go vet finds something, in any package and its tests, those of the
# benchmarks' module included: that also compiles them, which nothing else does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go vet ./...
(cd test/bench && GOFLAGS=-trimpath GOWORK=off go vet ./...)
echo "go vet finds nothing"
