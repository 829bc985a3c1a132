#!/usr/bin/env bash
# Runs the tests of what we rely on of the host, and of the manners of our types,
# against each minor of Kubernetes that is supported, and ends in a summary. Its
# control planes are built first, about five minutes each with an empty cache.
#
#   hack/test-matrix.sh                 all
#   hack/test-matrix.sh v1.34           some
#
# RUN picks tests, as go test -run does; FULL=1 runs all integration tests.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh

hosts=("$@")
[ $# -gt 0 ] || hosts=(v1.34 v1.35 v1.36)
packages=(./test/engine/client ./test/server)
run='^(TestFacts|TestHost|TestObserve|TestManners)$'
[ -z "${FULL:-}" ] || { packages=(./test/engine/... ./test/server); run=.; }

summary=()
failed=0
for host in "${hosts[@]}"; do
	word=FAILED
	began="${SECONDS}"
	printf '\n== Kubernetes %s\n' "${host#v}"
	if hack/verify-modules.sh "hack/tools/${host}" && tools="$(hack/build-tools.sh "${host}")"; then
		began="${SECONDS}"
		PENSTOCK_TOOLS="${tools}" go test -count=1 -timeout 20m -run "${RUN:-${run}}" "${packages[@]}" && word=ok
	fi
	[ "${word}" = ok ] || failed=1
	summary+=("$(printf '%-8s %-6s %4d s' "${host}" "${word}" "$((SECONDS - began))")")
done
printf '\n== summary\n'
printf '%s\n' "${summary[@]}"
exit "${failed}"
