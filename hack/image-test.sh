#!/usr/bin/env bash
# Builds the image of this machine twice, and compares the results. It runs the program from the
# image's files: in user, mount and process namespaces, read-only, as a user that the image does not
# know. artifacts/deploy deploys it. The first acts of the demo run with it.
#
#   hack/image-test.sh VERSION      after make build
#
# PENSTOCK_IMAGE=DIR takes a layout that exists. Where namespaces are forbidden, it says so
# and tests nothing more; PENSTOCK_NAMESPACES=required makes that a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh
export CGO_ENABLED=0

image="${PENSTOCK_IMAGE:-}"
if [ -z "${image}" ]; then
	scratch="$(mktemp -d)"
	trap 'rm -rf "${scratch}"' EXIT
	platform="linux/$(go env GOARCH)"
	for n in 1 2; do
		# The builds have separate folders, so that they share only compiled packages.
		go run ./hack/release image -version "$1" -platforms "${platform}" -out "${scratch}/${n}/image" | sed 's/.*: //' | tee "${scratch}/${n}.digest"
	done
	cmp "${scratch}/1.digest" "${scratch}/2.digest" || { echo "error: two builds of the same sources differ" >&2; exit 1; }
	diff -r "${scratch}/1/image" "${scratch}/2/image"
	image="${scratch}/1/image"
fi
PENSTOCK_TOOLS="$(hack/build-tools.sh)" PENSTOCK_PROGRAM="${PWD}/bin/penstock" PENSTOCK_IMAGE="$(cd "${image}" && pwd)" \
	go test -tags "$(cat hack/tags),integration" -trimpath -vet=off -count=1 -v -run '^TestImage$' ./test/demo
