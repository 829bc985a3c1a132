#!/usr/bin/env bash
# Fails if golangci-lint finds a problem: format, order of imports, go vet, staticcheck and the
# other linters of .golangci.yml. It checks the main module and the modules below test.
# golangci-lint is pinned in hack/tools/lint; its own cache makes a second run short.
#
#   hack/verify-lint.sh fmt      formats instead
#
# inputs: *.go .golangci.yml hack/tags go.mod go.sum test/*go.mod test/*go.sum hack/tools/lint
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
plain="${GOFLAGS:-} -trimpath"
. hack/tags.sh

cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/golangci-lint-$(cat hack/tools/lint/go.mod hack/tools/lint/go.sum | git hash-object --stdin | cut -c1-12)-$(go env GOVERSION)"
lint="${cache}/golangci-lint"
if [ ! -x "${lint}" ]; then
	echo "building golangci-lint, usually 2 min" >&2
	(cd hack/tools/lint && GOFLAGS=-trimpath GOWORK=off CGO_ENABLED=0 go build -o "${lint}.$$" github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
	mv "${lint}.$$" "${lint}"
fi
# Packages share their types in memory, which takes 6 GB without a limit.
export GOWORK=off CGO_ENABLED=0 GOGC=50 GOMEMLIMIT=3GiB
config="${PWD}/.golangci.yml" tags="$(cat hack/tags),integration"
for module in . $(git ls-files -- 'test/go.mod' 'test/*/go.mod' | xargs -r -n 1 dirname); do
	if [ "${1:-}" = fmt ]; then
		(cd "${module}" && "${lint}" fmt --config "${config}")
	else
		(cd "${module}" && "${lint}" run --config "${config}" --build-tags "${tags}" ./...)
	fi
done
[ "${1:-}" != fmt ] || exit 0
# Builds without the tags of hack/tags need no C library either. Only these packages have files for
# such builds.
GOFLAGS="${plain}" go vet ./pkg/catalog/image/...
echo "golangci-lint finds nothing"
