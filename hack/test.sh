#!/usr/bin/env bash
# Runs the project's checks and tests in steps, each with its time, and ends in a summary.
#
#   hack/test.sh                 verify unit smoke: what make test runs
#   hack/test.sh suites          the suites on real control planes; make test-all has test/node, too
#   hack/test.sh unit smoke      some steps
#
# All steps run even when one fails. TESTFLAGS is given to go test, for instance
# TESTFLAGS='-run TestDecide -count=1'. FULL=1 runs every case of the tests that otherwise
# take a sample, and repeats checks that passed before for the same content.
#
# A failed test runs once more, alone. Passing then still fails the run, unless
# hack/unstable-tests lists the test.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root="${PWD}"
. hack/tags.sh
# Builds do not depend on the path of the checkout, so that all clones share the build cache.
export CGO_ENABLED="${CGO_ENABLED:-0}"

suite_tags="$(cat hack/tags),integration"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}"
scratch="$(mktemp -d)"
summary=() failed=() building=""
# The first compilation of Kubernetes' libraries prints nothing for minutes.
(while sleep 30 >/dev/null 2>&1; do printf '… %d s\n' "${SECONDS}"; done) &
heartbeat=$!
trap 'kill ${heartbeat} ${building} 2>/dev/null; rm -rf "${scratch}"' EXIT
# Property tests use the same cases for every change. The slice fuzz searches for new cases.
[ -n "${FULL:-}" ] || export RAPID_SEED="${RAPID_SEED:-1}"
# Every process that a step starts inherits this mark.
export PENSTOCK_RUN="penstock-$$-${RANDOM}${RANDOM}"

# step NAME CMD... runs one step and records its outcome.
step() {
	local name="$1" began="${SECONDS}" word=ok
	shift
	printf '\n== %s\n' "${name}"
	note=""
	"$@" || { word=FAILED; failed+=("${name}"); }
	summary+=("$(printf '%-12s %-6s %5d s  %s' "${name}" "${word}" "$((SECONDS - began))" "${note}")")
	[ "${word}" = ok ]
}

# gotest "FLAGS" PACKAGE... runs go test in the current folder through gotestsum, prints
# packages and failures, and counts. gotestsum reruns failed tests alone.
gotest() {
	local events again status unknown flags="$1"
	shift
	events="$(mktemp "${scratch}/events.XXXXXX")"
	again="$(mktemp "${scratch}/again.XXXXXX")"
	# shellcheck disable=SC2086 # several flags
	"${gotestsum}" --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped,output \
		--rerun-fails=1 --rerun-fails-max-failures=10 --rerun-fails-run-root-test --rerun-fails-report "${again}" \
		--packages "$*" --jsonfile "${events}" \
		-- -vet=off -timeout 40m ${flags} ${TESTFLAGS:-} 2>&1
	status=$?
	note+="${note:+; }$(awk -F'"' '/"Action":"(pass|fail)"/ && !/"Test":/ { n[/"Action":"pass"/ ? "ok" : "failed"]++ }
		/"Action":"(pass|fail)"/ && /"Test":/ { t[/"Action":"pass"/ ? "ok" : "failed"]++ } /\(cached\)/ { c++ }
		END { printf "%d packages ok (%d cached), %d failed; %d tests ok, %d failed", n["ok"], c, n["failed"], t["ok"], t["failed"] }' "${events}")"
	[ "${status}" -eq 0 ] && [ -s "${again}" ] || return "${status}"
	# Each line of the report begins with the package and the test.
	unknown="$(sed 's|^github.com/penstock-project/penstock/||' "${again}" | grep -vFf <(sed -n 's/^\([^# ][^ ]*\) .*/\1:/p' "${root}/hack/unstable-tests"))"
	[ -n "${unknown}" ] || return 0
	printf 'failed first and passed alone, which fails the run (hack/unstable-tests lists the known ones):\n%s\n' "${unknown}"
	return 1
}

# runner builds gotestsum, pinned in hack/tools/test, into the cache of tools.
runner() {
	local folder
	folder="${cache}/gotestsum-$(cat hack/tools/test/go.mod hack/tools/test/go.sum | git hash-object --stdin | cut -c1-12)-$(go env GOVERSION)"
	gotestsum="${folder}/gotestsum"
	[ -x "${gotestsum}" ] || (cd hack/tools/test && GOFLAGS=-trimpath GOWORK=off go build -o "${gotestsum}" gotest.tools/gotestsum)
}

# begin_tools builds the control plane while other steps run; end_tools waits for it.
begin_tools() {
	GOGC=400 hack/build-tools.sh kubectl-batch >"${scratch}/folder" 2>"${scratch}/tools" &
	building=$!
}
end_tools() {
	[ -n "${building}" ] || begin_tools
	wait "${building}" || { cat "${scratch}/tools"; return 1; }
	building=""
	PENSTOCK_TOOLS="$(cat "${scratch}/folder")"
	export PENSTOCK_TOOLS
	note="${PENSTOCK_TOOLS}"
}

# content PATH... prints the names of the files in these paths, and the hash of each.
content() {
	local files
	files="$(git ls-files --cached --others --exclude-standard -- "$@" | sort |
		while IFS= read -r file; do [ ! -f "${file}" ] || printf '%s\n' "${file}"; done)"
	echo "${files}"
	git hash-object --no-filters --stdin-paths <<<"${files}"
}

# program builds the program once for all tests that run it. The name of its folder contains a hash
# of the program and of the files that the tests' commands read. go test caches results by the
# environment, and does not notice files that other processes read.
program() {
	local programs="${cache}/program" built sum
	mkdir -p "${programs}"
	built="$(mktemp -d "${programs}/.XXXXXX")"
	# Tests do not depend on version control: the version is always "devel".
	GOWORK=off GOGC=400 go build -buildvcs=false -ldflags='-s -w' -o "${built}/penstock" ./cmd/penstock ||
		{ rm -rf "${built}"; return 1; }
	sum="$({ git hash-object --no-filters "${built}/penstock"; content artifacts hack/promtool.sh hack/tools/promtool; } | git hash-object --stdin | cut -c1-16)"
	[ -e "${programs}/${sum}" ] || mv -T "${built}" "${programs}/${sum}" 2>/dev/null || true
	rm -rf "${built}"
	touch "${programs}/${sum}"
	find "${programs}" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
	export PENSTOCK_PROGRAM="${programs}/${sum}/penstock"
	note="${sum}"
}

# verify runs hack/verify-*.sh. A script with a line "# inputs: PATH..." is skipped when it
# passed before for the same content, in any clone.
verify() {
	local script stamp began inputs bad=0
	for script in hack/verify-*.sh; do
		began="${SECONDS}"
		printf -- '-- %s\n' "${script}"
		stamp=""
		read -ra inputs < <(sed -n 's/^# inputs: //p' "${script}") &&
			stamp="${cache}/verified/$(basename "${script}" .sh)-$({ go env GOVERSION; content "${script}" "${inputs[@]}"; } | git hash-object --stdin)"
		if [ -n "${stamp}" ] && [ -e "${stamp}" ] && [ "${FULL:-}" != 1 ]; then
			touch "${stamp}"
			echo "   passed before, for the same content"
		elif GOGC="${GOGC:-400}" "${script}"; then
			[ -z "${stamp}" ] || { mkdir -p "${stamp%/*}" && : >"${stamp}"; }
			echo "   $((SECONDS - began)) s"
		else
			bad=$((bad + 1))
			note+="${script} "
		fi
	done
	find "${cache}/verified" -type f -mtime +30 -delete 2>/dev/null
	[ "${bad}" -eq 0 ]
}

# module FOLDER tests a separate module.
module() {
	pushd "$1" >/dev/null || return 1
	gotest "-p 1 -parallel 2" ./...
	local status=$?
	popd >/dev/null || return 1
	return "${status}"
}

# node tests the causes of unready Pods with a kubelet: the first part of make node-test. Machines
# without the means for a real node skip it, but the slices of the node fail there.
node() {
	if ! hack/node-tools.sh >/dev/null 2>"${scratch}/node"; then
		note="skipped, no real node: $(tail -n 1 "${scratch}/node")"
		return 0
	fi
	PENSTOCK_NAMESPACES="" gotest "-tags=${suite_tags} -run ^TestCauses\$" ./test/node
}

# nothing_left looks for processes that a step left running. Helpers of go end a moment later.
nothing_left() {
	local left="" mark="${PENSTOCK_RUN}"
	unset PENSTOCK_RUN
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		left="$(grep -lsz "^PENSTOCK_RUN=${mark}$" /proc/[0-9]*/environ | cut -d/ -f3 | paste -sd, | xargs -r ps -ww -o pid=,args= -p | cut -c1-200)"
		[ -n "${left}" ] || return 0
		sleep 1
	done
	printf 'error: still running, left by the steps above:\n%s\n' "${left}"
	return 1
}

[ $# -gt 0 ] || set -- verify unit smoke
[[ " $* " != *" suites "* ]] || set -- "$@" test/bench test/console
runner || exit 1
# The program is built before the tools: two concurrent go commands would compile shared packages
# twice.
if [[ "$*" =~ smoke|suites|test/ ]]; then
	{ [ -n "${PENSTOCK_PROGRAM:-}" ] || step program program; } && begin_tools
fi
for name in "$@"; do
	case "${name}" in smoke | suites | test/*)
		[ -n "${PENSTOCK_PROGRAM:-}" ] || break # it did not compile
		[ -z "${building}" ] || step tools end_tools || break
		;;
	esac
	# Tests on a control plane mostly wait. With more processes than these, every API server becomes
	# slower, until clients time out.
	case "${name}" in
	verify) step verify verify ;;
	unit) step unit gotest "" ./... ;;
	smoke) step smoke gotest "-tags=${suite_tags} -parallel 6" ./test/smoke ;;
	suites)
		# The longest packages come first: go test starts packages in the order of its arguments.
		mapfile -t packages < <(go list -tags=integration ./test/... | grep -vE '/test/(server|e2e|smoke|node)$')
		step suites gotest "-tags=${suite_tags} -p 2 -parallel 3" ./test/server ./test/e2e "${packages[@]}"
		;;
	test/bench) step test/bench module test/bench ;;
	test/console)
		PENSTOCK_NODE_MODULES="$(hack/console-tools.sh 2>/dev/null)" && export PENSTOCK_NODE_MODULES
		step test/console module test/console
		;;
	test/node) step test/node node ;;
	*) echo "error: there is no step '${name}'; steps are verify, unit, smoke, suites, test/bench, test/console, test/node" >&2; exit 2 ;;
	esac
done
step "nothing left" nothing_left

printf '\n== summary (%d s)\n' "${SECONDS}"
printf '%s\n' "${summary[@]}"
cat "${scratch}"/events.* 2>/dev/null | grep -o 'noticed: .*' | cut -c1-2000 | head -n 40
printf '\nthe slowest tests:\n'
cat "${scratch}"/events.* 2>/dev/null | "${gotestsum}" tool slowest --num 10 --threshold 1s | sed 's|^github.com/penstock-project/penstock/||'
if [ "${#failed[@]}" -gt 0 ]; then
	printf '\nfailures, their first lines:\n'
	cat "${scratch}"/events.* 2>/dev/null | "${gotestsum}" --raw-command --format dots --hide-summary skipped -- cat 2>&1 |
		grep -E '^panic:|^=== FAIL|^ +[A-Za-z0-9_]+\.go:[0-9]+: ' | cut -c1-300 | head -n 60
	printf '\nFAILED: %s\n' "${failed[*]}"
	exit 1
fi
echo "all steps passed"
