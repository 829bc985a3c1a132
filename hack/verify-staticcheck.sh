#!/usr/bin/env bash
# Fails when staticcheck finds something. Its version is pinned in
# hack/tools/lint and compiled into the cache of tools on first use.
#
# inputs: *.go hack/tags go.mod go.sum test/bench/go.mod test/bench/go.sum test/console/go.mod test/console/go.sum hack/tools/lint
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh

version="$(sed -n 's|^[[:space:]]*\(require \)\{0,1\}honnef.co/go/tools \(v[^ ]*\).*|\2|p' hack/tools/lint/go.mod)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/staticcheck-${version}-$(go env GOVERSION)"
if [ ! -x "${cache}/staticcheck" ]; then
	echo "building staticcheck ${version}, usually 20 s" >&2
	mkdir -p "${cache}"
	# -trimpath, as all else: the standard library is compiled once.
	(cd hack/tools/lint && GOFLAGS=-trimpath GOWORK=off go build -o "${cache}/.staticcheck.$$" honnef.co/go/tools/cmd/staticcheck)
	mv "${cache}/.staticcheck.$$" "${cache}/staticcheck"
fi

# All checks, with those that are usually left out: a package comment and
# comments that begin with the name are habits of this house. Not ST1003, because
# conversion-gen finds functions by names with underscores. What is generated has
# habits of its own.
packages=()
while IFS= read -r package; do
	packages+=("${package}")
done < <(go list ./... | grep -v '/pkg/generated\(/\|$\)')
"${cache}/staticcheck" -checks all,-ST1003 "${packages[@]}"
# The benchmarks and the tests of the console are modules of their own.
for module in test/bench test/console; do
	(cd "${module}" && GOFLAGS="${GOFLAGS} -trimpath" GOWORK=off "${cache}/staticcheck" -checks all,-ST1003 ./...)
done
echo "staticcheck finds nothing in ${#packages[@]} packages"
