#!/usr/bin/env bash
# Fails when go vet finds something, in any package and its tests, those of the
# modules of benchmarks and of the console included: that also compiles them, which nothing else does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
plain="${GOFLAGS:-}"
. hack/tags.sh

go vet ./...
for module in test/bench test/console; do
	(cd "${module}" && GOFLAGS="${GOFLAGS} -trimpath" GOWORK=off go vet ./...)
done
# Whoever builds without the tags of hack/tags needs no C library either. These are the
# packages that have files for that.
GOFLAGS="${plain/-tags=$(cat hack/tags)/}" go vet ./pkg/catalog/image/...
echo "go vet finds nothing"
