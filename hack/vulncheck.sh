#!/usr/bin/env bash
# Searches for known vulnerabilities that the programs can reach, with govulncheck, pinned in
# hack/tools/lint. The database of the Go project is a module, too: its newest version comes from
# the module proxy. VULNDB=URL selects another database, such as https://vuln.go.dev.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh
export CGO_ENABLED=0
scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT
(cd hack/tools/lint && GOFLAGS=-trimpath GOWORK=off go build -o "${scratch}/" golang.org/x/vuln/cmd/govulncheck)
if [ -z "${VULNDB:-}" ]; then
	module="$(cd "${scratch}" && GOFLAGS=-mod=mod GOWORK=off go mod download -json golang.org/x/vulndb@latest)" ||
		{ printf 'error: the module golang.org/x/vulndb cannot be had; VULNDB=URL names another database\n%s\n' "${module}" >&2; exit 1; }
	VULNDB="file://$(sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p' <<<"${module}")/data/osv"
	sed -n 's/^\t"Version": "\(.*\)",*$/database: golang.org\/x\/vulndb \1/p' <<<"${module}"
fi
"${scratch}/govulncheck" -db "${VULNDB}" ./cmd/...
