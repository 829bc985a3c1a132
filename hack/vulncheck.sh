#!/usr/bin/env bash
# Looks for known vulnerabilities that the programs can reach, with govulncheck, pinned in
# hack/tools/lint. It needs the database of vuln.go.dev, so it is no part of make test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT
(cd hack/tools/lint && GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0 go build -o "${scratch}/" golang.org/x/vuln/cmd/govulncheck)
"${scratch}/govulncheck" -tags "$(cat hack/tags)" ./cmd/...
