#!/usr/bin/env bash
# Runs the project's checks and tests, step by step, each with its time, and
# ends in a summary. All steps run even when one fails; the exit status is that
# of the whole.
#
#   hack/test.sh                 everything: what make test and .ci/run do
#   hack/test.sh unit e2e        some steps
#
# Steps: tools verify unit integration e2e. TESTFLAGS is given to go test, for
# instance TESTFLAGS='-run TestDecide -v -count=1'.
#
# On Linux it ends with a look for processes that a step left running: all that
# was started here inherits a mark in its environment.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf "%s\n" "$@"; }
mark="penstock-$$-${RANDOM}${RANDOM}"
summary=()
failed=()
failures="$(mktemp)"
trap 'rm -f "${failures}"' EXIT

# watched CMD... runs a command and says every half minute that it still runs:
# a first compile of Kubernetes' libraries is silent for minutes.
watched() {
	local began="${SECONDS}" beat status
	(
		trap 'kill "${nap}"; exit 0' TERM
		while :; do
			# Not holding our output open, whose reader waits for its end.
			sleep 30 >/dev/null 2>&1 &
			nap=$!
			wait "${nap}"
			printf '… still running after %d s\n' "$((SECONDS - began))"
		done
	) &
	beat=$!
	env PENSTOCK_RUN="${mark}" "$@"
	status=$?
	kill "${beat}" 2>/dev/null
	wait "${beat}" 2>/dev/null
	return "${status}"
}

# step NAME CMD... runs one step and notes how it went.
step() {
	local name="$1" began="${SECONDS}" word=ok
	shift
	say "" "== ${name}"
	note=""
	"$@" || { word=FAILED; failed+=("${name}"); }
	summary+=("$(printf '%-12s %-6s %5d s  %s' "${name}" "${word}" "$((SECONDS - began))" "${note}")")
	[ "${word}" = ok ]
}

# gotest PACKAGE... runs go test and counts what it printed.
gotest() {
	if [ $# -eq 0 ]; then
		note="no packages yet"
		return 0
	fi
	local out status
	out="$(mktemp)"
	# shellcheck disable=SC2086 # several flags
	watched go test -timeout 20m ${TESTFLAGS:-} "$@" 2>&1 | grep --line-buffered -v 'no test files\]$' | tee "${out}"
	status=${PIPESTATUS[0]}
	note="$(awk '/^ok / {ok++} /^ok .*\(cached\)/ {c++} /^FAIL\t/ {f++} /^[ \t]*--- FAIL:/ {t++}
		END {printf "%d packages ok (%d cached), %d failed, %d tests failed", ok, c, f, t}' "${out}")"
	# What failed and why, for the summary: each failed test with the first line of
	# each of its complaints.
	grep -E '^(panic:|FAIL	)|^ *--- FAIL:|^ +[A-Za-z0-9_]+\.go:[0-9]+: ' "${out}" | cut -c1-300 >>"${failures}"
	rm -f "${out}"
	return "${status}"
}

# packages WHAT lists the packages of a group. Every package is in one, so that
# a new folder is tested without being named here.
packages() {
	case "$1" in
	unit) go list ./... | grep -v '/penstock/test/' ;;
	e2e) go list ./test/... | grep -E '/penstock/test/(e2e|demo)(/|$)' ;;
	integration) go list ./test/... | grep -vE '/penstock/test/(e2e|demo)(/|$)' ;;
	esac
}

group() {
	local list=() flags=() package
	while IFS= read -r package; do
		list+=("${package}")
	done < <(packages "$1")
	# Tests against a control plane wait most of the time: more of them than there
	# are processors.
	[ "$1" = unit ] || flags=(-parallel 4)
	gotest ${flags[@]+"${flags[@]}"} ${list[@]+"${list[@]}"}
}

# benchmarks tests what the benchmarks are made of, a module of its own. They
# themselves skip: make bench-reads runs them.
benchmarks() {
	local status
	pushd test/bench >/dev/null || return 1
	gotest ./...
	status=$?
	popd >/dev/null || return 1
	return "${status}"
}

tools() {
	PENSTOCK_TOOLS="$(hack/build-tools.sh)" || return 1
	export PENSTOCK_TOOLS
	note="${PENSTOCK_TOOLS}"
}

verify() {
	local script bad=0 began
	for script in hack/verify-*.sh; do
		began="${SECONDS}"
		say "-- ${script}"
		watched "${script}" || { bad=$((bad + 1)); note+="${script} "; }
		say "   $((SECONDS - began)) s"
	done
	[ "${bad}" -eq 0 ]
}

# leftovers lists the processes that carry the mark, as "pid command". go leaves
# helpers of its own behind for a moment.
leftovers() {
	local environ pid
	for environ in /proc/[0-9]*/environ; do
		{ tr '\0' '\n' <"${environ}" | grep -qx "PENSTOCK_RUN=${mark}"; } 2>/dev/null || continue
		pid="${environ#/proc/}"
		pid="${pid%/environ}"
		printf '%s %s\n' "${pid}" "$(tr '\0' ' ' <"/proc/${pid}/cmdline" 2>/dev/null | cut -c1-200)"
	done
}

nothing_left() {
	if [ ! -r /proc/self/environ ]; then
		note="cannot be seen on this system"
		return 0
	fi
	local left attempt
	for attempt in 1 2 3 4 5 6 7 8 9 10; do
		left="$(leftovers)"
		[ -n "${left}" ] || return 0
		sleep 1
	done
	say "error: still running, left by the steps above (not ended, for you to look at):" "${left}"
	return 1
}

steps=("$@")
[ $# -gt 0 ] || steps=(tools verify unit integration e2e)
for name in "${steps[@]}"; do
	case "${name}" in
	tools) step tools tools || break ;;
	verify) step verify verify ;;
	unit | integration | e2e)
		# Some tests need the control plane: built once here, with progress,
		# and not inside of a test, where go test hides it.
		[ -n "${PENSTOCK_TOOLS:-}" ] || tools || { failed+=(tools); break; }
		step "${name}" group "${name}"
		[ "${name}" != unit ] || step "unit (bench)" benchmarks
		;;
	*)
		say "error: there is no step '${name}'; steps are tools, verify, unit, integration, e2e" >&2
		exit 2
		;;
	esac
done
step "nothing left" nothing_left

say "" "== summary (${SECONDS} s)"
printf '%s\n' "${summary[@]}"
if [ "${#failed[@]}" -gt 0 ]; then
	say "" "what failed, its first lines:"
	head -n 60 "${failures}"
	say "" "FAILED: ${failed[*]}"
	exit 1
fi
say "all is well"
