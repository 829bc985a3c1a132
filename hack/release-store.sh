#!/usr/bin/env bash
# Keeps what a release leaves behind as test data, so that later versions are tested against it.
#
#   hack/release-store.sh record DIR    writes the snapshot of the release in DIR
#   hack/release-store.sh back DIR      upgrades from its snapshot to this checkout, and goes back
#
# DIR has the files of the release, for this machine. The snapshot of v1.2.3 is a folder
# test/server/testdata/releases/v1.2.3:
#
#   store.json.gz   the records of Penstock's store and its objects in the host, of a control
#                   plane on which the release's program has run (TestRecordRelease)
#   chart.tgz       the chart
#
# TestFormerReleases upgrades every snapshot, and TestDeploy/Chart/Former every chart. Keep the
# snapshots from which an upgrade is supported.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh
export CGO_ENABLED=0

usage() { sed -n '2,/^set/{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
[ "$#" -eq 2 ] || usage
verb="$1"
release="$(cd "$2" && pwd)"
version="$(cd "${release}" && ls penstock_*_image.tar.gz)"
version="${version#penstock_}"
version="${version%_image.tar.gz}"
folder="test/server/testdata/releases/${version}"

(cd "${release}" && sha256sum --check --quiet --ignore-missing checksums.txt)
scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT
tar -xzf "${release}/penstock_${version}_linux_$(go env GOARCH).tar.gz" -C "${scratch}"
PENSTOCK_TOOLS="${PENSTOCK_TOOLS:-$(hack/build-tools.sh)}"
export PENSTOCK_TOOLS

# suite RUN runs a test of test/server
suite() { go test -tags="$(cat hack/tags),integration" -vet=off -count=1 -v -timeout 20m -run "$1" ./test/server; }

case "${verb}" in
record)
	RECORD_RELEASE="${PWD}/${folder}" PENSTOCK_PROGRAM="${scratch}/penstock" suite '^TestRecordRelease$'
	cp "${release}/penstock-${version#v}.tgz" "${folder}/chart.tgz"
	ls -l "${folder}"
	;;
back) FORMER_PROGRAM="${scratch}/penstock" suite "^TestFormerReleases\$/^${version//./\\.}\$" ;;
*) usage ;;
esac
