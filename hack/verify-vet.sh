#!/usr/bin/env bash
# Fails when go vet finds something, in any package and its tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go vet ./...
echo "go vet finds nothing"
