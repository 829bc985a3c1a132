#!/usr/bin/env bash
# Runs slices: tests that take too long for every change.
#
#   hack/test-slice.sh               lists them
#   hack/test-slice.sh race soak     some
#   hack/test-slice.sh next          the one whose turn it is, by the count of commits
#
# LIMIT=SECONDS ends a slice that takes longer. What it did until then passed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh
export CGO_ENABLED="${CGO_ENABLED:-0}"

slices='race      unit tests with the race detector; needs a C compiler
busy      unit tests, smoke and suites beside two busy loops: no test may fail because the machine is slow
full      unit tests with every case that they sample otherwise, and all checks again
adoption  every crash point of adoption, and upgrades from all former charts
kinds     hundreds of custom resources of a kind made of a chart
console   every page of the console in every look
soak      minutes of trouble for SOAK=3m EXTENSIONS=200 SEED=n; PROFILE=folder for heaps
faults    faults between three replicas; FAULTS=all or names
killed    the program is killed behind changes of an extension, and of a rollout to many clusters
fuzz      properties with RAPID_CHECKS=1000 new cases each, every fuzz target for FUZZTIME=10s
node-causes    real Pods: a kubelet, containerd and kube-proxy in namespaces; needs root. Why a Pod is not ready
node-installed the same: Penstock by kustomize, by the chart, as three replicas; its troubles; uninstalled
node-operator  the same: cert-manager is upgraded and rolled back
image     the image, built twice, and its program in namespaces
release   a release for this machine or RELEASE=folder, installed from its files alone; needs root, for a real node
upgrade   a control plane goes from 1.34 to 1.37 under a running Penstock, as far as their programs can be had
v1.34     our suites of the host on Kubernetes 1.34
v1.35     the same on 1.35
v1.36     the same on 1.36
v1.37     the same on 1.37'

suite() { # suite RUN PACKAGE... runs tests of the suites, whole
	local run="$1"
	shift
	PENSTOCK_TOOLS="${PENSTOCK_TOOLS:-$(hack/build-tools.sh kubectl-batch)}" \
		go test -tags="$(cat hack/tags),integration" -vet=off -run "${run}" -count 1 -v -timeout 1h "$@"
}

busy() {
	local loops=() status=0
	while :; do :; done & loops+=($!)
	while :; do :; done & loops+=($!)
	TESTFLAGS=-count=1 hack/test.sh unit smoke suites || status=$?
	kill "${loops[@]}"
	return "${status}"
}

fuzz() {
	local file target failed=() packages
	packages="$(git grep --untracked -l pgregory.net/rapid -- 'pkg/*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')"
	# shellcheck disable=SC2086 # several packages
	RAPID_CHECKS="${RAPID_CHECKS:-1000}" go test -vet=off -timeout 1h ${packages} || failed+=(properties)
	while IFS=: read -r file target; do
		echo "== ${target} in $(dirname "${file}")"
		go test -run '^$' -fuzz "^${target}\$" -fuzztime "${FUZZTIME:-10s}" "./$(dirname "${file}")" || failed+=("${target}")
	done < <(git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]+' -- 'pkg/*_test.go' 'cmd/*_test.go' | sed 's/:func /:/')
	[ "${#failed[@]}" -eq 0 ] || { echo "error: failed: ${failed[*]}" >&2; return 1; }
}

# host VERSION tests our use of a host version. Only this slice checks whether the modules of other
# minors are tidy, because that needs the whole source of their Kubernetes.
host() {
	hack/verify-modules.sh "hack/tools/$1"
	PENSTOCK_TOOLS="$(hack/build-tools.sh "$1")"
	export PENSTOCK_TOOLS
	suite '^(TestFacts|TestHost|TestObserve|TestManners)$' ./test/engine/client ./test/server
}

run() {
	case "$1" in
	# These two tests measure memory, and the race detector uses most of it.
	race) CGO_ENABLED=1 TESTFLAGS="-race -skip ^(TestIdlePassMakesLittleGarbage|TestBombs)\$ ${TESTFLAGS:-}" hack/test.sh unit ;;
	busy) busy ;;
	full) FULL=1 hack/test.sh verify unit ;;
	adoption) FULL=1 hack/test.sh test/bench ;;
	kinds) FULL=1 suite . ./test/chartkind ;;
	console) FULL=1 hack/test.sh test/console ;;
	soak) SOAK="${SOAK:-1}" PROFILE="${PROFILE:+$(realpath "${PROFILE}")}" suite '^TestSoak$' ./test/soak ;;
	faults) FAULTS="${FAULTS:-all}" suite '^TestFaults$' ./test/soak ;;
	killed) FULL=1 suite '^TestExtensions$/^(Killed|FleetKilled)$' ./test/extension ;;
	fuzz) fuzz ;;
	node-causes) suite . -skip '^(TestInstalled|TestOperator)$' ./test/node ;;
	node-installed) suite '^TestInstalled$' ./test/node ;;
	node-operator) suite '^TestOperator$' ./test/node ;;
	image) make build && hack/image-test.sh "$(git describe --tags --always --dirty)" ;;
	release) hack/release-test.sh "${RELEASE:-}" ;;
	upgrade) for minor in v1.34 v1.35 v1.36 v1.37; do hack/build-tools.sh "${minor}" >/dev/null || echo "${minor} cannot be had: it is left out" >&2; done; UPGRADE=1 suite '^TestClusterUpgrade$' ./test/e2e ;;
	v1.*) host "$1" ;;
	esac
}

names=()
while read -r name _; do names+=("${name}"); done <<<"${slices}"
if [ $# -eq 0 ]; then
	echo "make test-slice N=…, one of:"
	sed 's/^/  /' <<<"${slices}"
	exit 0
fi
[ "$1" != next ] || set -- "${names[$(git rev-list --count HEAD) % ${#names[@]}]}"
for name in "$@"; do
	grep -q "^${name} " <<<"${slices}" || { echo "error: there is no slice '${name}'; slices are ${names[*]}" >&2; exit 2; }
	printf '\n== slice %s\n' "${name}"
	if [ -z "${LIMIT:-}" ]; then
		run "${name}"
	else
		status=0
		LIMIT= timeout "${LIMIT}" hack/test-slice.sh "${name}" || status=$?
		[ "${status}" -ne 124 ] || { echo "slice ${name}: not finished after ${LIMIT} s, nothing failed until then"; status=0; }
		[ "${status}" -eq 0 ] || exit "${status}"
	fi
done
