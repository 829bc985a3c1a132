#!/usr/bin/env bash
# Runs a suite of measurements: hack/bench.sh SUITE, or make bench SUITE=reads. Without a suite it
# lists the suites. FULL=1 measures more and FULL=0 less, for the suites that list it.
# PROFILE=<folder> writes profiles of reads, memory, rollout, cost, scale and extensions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh

# suites prints the name of each suite, its folders, tests, time limit and description.
suites() {
	cat <<-'EOF'
		reads;bench/reads;TestReads;2h;reads beside custom resources, 8 min; FULL=1: 25 min
		memory;bench/reads;TestMemory;2h;memory with REVISIONS=5000, 10 min; FULL=0: with 300
		rollout;bench/rollout;TestRollout;6h;rollouts beside Helm's SDK, kubectl and a plain loop, at 0 and 5 ms, 12 min; FULL=1: hours
		cost;bench/rollout;TestRevisionCost;1h;processor time of a revision, 3 min; EXTENSIONS=<n>; with PROFILE by part
		limit;bench/rollout;TestMemoryLimit;1h;100 extensions within 128 and 96 MiB of memory, 3 min
		scale;bench/rollout;TestScale;7h;a process with EXTENSIONS=1000, 6 min; FULL=1: with 10,000, 40 min
		targets;bench/rollout;TestTargets;2h;each further target cluster, with 1, 10 and 100 of them, 10 min; FULL=1: 1,000; TARGETS=<n>
		extensions;bench/rollout;TestExtensions;2h;ClusterExtensions beside Helm's SDK, 7 min; FULL=1: 1,000 of them; FULL=0: 10
		images;bench/rollout;TestImages;1h;100 ClusterExtensions of 20 images, from a registry at 0 and 5 ms, beside Helm's SDK, 5 min; FULL=0: of 2
		chartkinds;bench/rollout;TestChartKinds;1h;custom resources with a chart, 4 min; FULL=1: 100 of them; FULL=0: 3
		webhooks;bench/webhooks;Test(Webhooks|Policies);30m;webhooks and policies in kube-apiserver, 4 min
		hostile;bench/hostile;TestHostile;1h;the most expensive requests without rights, 3 min
		console;console;TestScale;90m;the console with 5,000 revisions in a browser, 8 min; FULL=1: over an hour
		store;bench/store bench/collection;Test(Store|Collection);1h;revisions of real operators in the store, 5 min
		go;;;1h;the Go benchmarks beside the code
	EOF
}

while IFS=';' read -r name folders tests limit description; do
	if [ -z "${1:-}" ]; then
		printf '%-11s %s\n' "${name}" "${description}"
	elif [ "${name}" = go ] && [ "$1" = go ]; then
		mapfile -t folders < <(git grep -l 'func Benchmark' -- 'pkg/*_test.go' 'cmd/*_test.go' | xargs -n 1 dirname | sort -u)
		exec go test -run '^$' -bench . -benchmem -timeout "${limit}" "${folders[@]/#/./}"
	elif [ "${name}" = "$1" ]; then
		# The store needs no control plane.
		[ "${name}" = store ] || PENSTOCK_TOOLS="$(hack/build-tools.sh kubectl-batch)"
		[ -z "${PROFILE:-}" ] || PROFILE="$(realpath -m "${PROFILE}")"
		export BENCH="${name}" PENSTOCK_TOOLS PROFILE
		read -ra folders <<<"${folders}"
		root="${PWD}"
		cd "test/${folders[0]}"
		exec go test -p 1 -run "^${tests}\$" -count 1 -v -timeout "${limit}" "${folders[@]/#/${root}/test/}"
	fi
done < <(suites)
[ -z "${1:-}" ] || { echo "error: there is no suite $1; hack/bench.sh lists them" >&2; exit 2; }
