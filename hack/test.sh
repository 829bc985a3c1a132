#!/usr/bin/env bash
# Runs the project's checks and tests, step by step, each with its time, and
# ends in a summary. All steps run even when one fails; the exit status is that
# of the whole.
#
#   hack/test.sh                 everything: what make test and .ci/run do
#   hack/test.sh unit e2e        some steps
#
# Steps: tools verify tests. tests is unit and cluster in one run of go test, so
# that unit tests use the processors while tests of a cluster wait; integration
# and e2e are the two halves of cluster. TESTFLAGS is given to go test, for
# instance TESTFLAGS='-run TestDecide -count=1'.
#
# FULL=1 takes all of what is otherwise a sample, and repeats checks of content
# that passed before.
#
# When at most thirty tests failed, counted with those that contain them, they run once
# more, whole and alone: parts of a test may build on those before them. One that passes
# then does not fail the whole, and the summary names it: it is a defect of the test or of
# the program all the same. RERUN=0 takes the first answer, as test-busy does.
#
# On Linux it ends with a look for processes that a step left running: all that
# was started here inherits a mark in its environment.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What is built does not depend on the folder of the checkout: another clone finds it in the
# cache of builds, and results of tests as well, except of those that read files of the
# checkout: go test knows such files by path and time.
export GOFLAGS="${GOFLAGS:-} -trimpath"
# And it is what is shipped: these packages, and a static program. Tests are built like it,
# so that both find what is compiled already.
. hack/tags.sh
export CGO_ENABLED="${CGO_ENABLED:-0}"

say() { printf "%s\n" "$@"; }
mark="penstock-$$-${RANDOM}${RANDOM}"
summary=()
failed=()
events="$(mktemp)"
flaky="$(mktemp)"
gotestsum=""
beside=""
building=""
besides="$(mktemp -d)"
trap 'kill ${beside} ${building} 2>/dev/null; rm -rf "${events}" "${flaky}" "${besides}"' EXIT

# build CMD... runs a command that compiles or checks, with memory taken for processor
# time: a sixth of that of a compiler is collecting garbage. Not tests: the program
# under test has settings of its own, and with -exec, which could restore them, go test
# remembers no result.
build() { watched env GOGC="${GOGC:-400}" "$@"; }

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

# gotest PACKAGE... runs go test, prints packages and what failed, and counts.
gotest() {
	if [ $# -eq 0 ]; then
		note="no packages yet"
		return 0
	fi
	local out again status flags=() packages=()
	out="$(mktemp)"
	again="$(mktemp)"
	while [ $# -gt 0 ]; do
		case "$1" in
		-*) flags+=("$1" "$2"); shift 2 ;;
		*) packages+=("$1"); shift ;;
		esac
	done
	# shellcheck disable=SC2086 # several flags
	# Without vet, which is a check of its own.
	watched "${gotestsum}" --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped,output \
		--rerun-fails="${RERUN:-1}" --rerun-fails-max-failures=30 --rerun-fails-run-root-test --rerun-fails-report "${again}" --packages "${packages[*]}" \
		--jsonfile "${out}" -- -vet=off -timeout 40m ${flags[@]+"${flags[@]}"} ${TESTFLAGS:-} 2>&1
	status=$?
	[ "${status}" -ne 0 ] || cat "${again}" >>"${flaky}"
	rm -f "${again}"
	note="$(awk -F'"' '/"Action":"(pass|fail)"/ && !/"Test":/ { n[/"Action":"pass"/ ? "ok" : "failed"]++ }
		/"Action":"fail"/ && /"Test":/ { t++ } /\(cached\)/ { c++ }
		END { printf "%d packages ok (%d cached), %d failed, %d tests failed", n["ok"], c, n["failed"], t }' "${out}")"
	cat "${out}" >>"${events}"
	rm -f "${out}"
	return "${status}"
}

# slowest prints the ten tests that took longest, and those that contain them.
slowest() {
	[ -s "${events}" ] || return 0
	say "" "the slowest tests:"
	"${gotestsum}" tool slowest --num 10 --threshold 1s --jsonfile "${events}" | sed 's|^github.com/penstock-project/penstock/||'
}

# reasons prints each failed test with the first line of each of its complaints.
reasons() {
	"${gotestsum}" --raw-command --format dots --hide-summary skipped -- cat "${events}" 2>&1 |
		grep -E '^panic:|^=== FAIL|^ +[A-Za-z0-9_]+\.go:[0-9]+: ' | cut -c1-300 | head -n 60
}

# packages WHAT lists the packages of a group. Every package is in one, so that
# a new folder is tested without being named here.
packages() {
	case "$1" in
	unit) go list ./... | grep -v '/penstock/test/' ;;
	e2e) go list ./test/... | grep -E '/penstock/test/(e2e|demo)(/|$)' ;;
	integration) go list ./test/... | grep -vE '/penstock/test/(e2e|demo)(/|$)' ;;
	cluster) packages e2e && packages integration ;;
	tests) packages cluster && packages unit ;;
	esac
}

# longest are the packages whose tests take longest. go test begins packages in the
# order in which they are named, and one that begins last ends last.
longest=(test/server test/e2e pkg/registry/olm test/extension test/engine/rollout test/chartkind
	pkg/controller/plan test/template test/framework/cluster test/engine/client
	test/framework/plane test/engine/catalog)

# longest_first is a filter of packages.
longest_first() {
	awk -v longest="${longest[*]}" '
		BEGIN { n = split(longest, order, " ") }
		{ name = $0; sub("^.*/penstock/", "", name); line[name] = $0; all[NR] = name }
		END {
			for (i = 1; i <= n; i++) if (order[i] in line) { print line[order[i]]; delete line[order[i]] }
			for (i = 1; i <= NR; i++) if (all[i] in line) print line[all[i]]
		}'
}

group() {
	local list=() flags=() package
	while IFS= read -r package; do
		list+=("${package}")
	done < <(packages "$1" | longest_first)
	# Tests against a control plane wait most of the time: more of them than there are
	# processors. Many more do not end sooner: each API server answers later, until clients
	# give up. With three packages beside the modules, 30 processes waited for two processors.
	[ "$1" = unit ] || flags=(-p 2 -parallel 4)
	gotest ${flags[@]+"${flags[@]}"} ${list[@]+"${list[@]}"}
}

# modules tests the modules of their own: what the benchmarks are made of, which
# themselves skip (make bench-reads runs them), and the console in a browser, where the
# program was built.
modules() {
	local status=0 module notes=""
	for module in test/bench test/console; do
		if [ "${module}" = test/console ]; then
			[ -n "${PENSTOCK_PROGRAM:-}" ] || continue
			# Whoever needs what could not be fetched says so.
			PENSTOCK_NODE_MODULES="$(hack/console-tools.sh 2>/dev/null)"
			export PENSTOCK_NODE_MODULES
		fi
		pushd "${module}" >/dev/null || return 1
		# Some need a control plane, which waits.
		gotest -p 1 -parallel 2 ./... || status=1
		notes+="${notes:+; }${module}: ${note}"
		popd >/dev/null || return 1
	done
	note="${notes}"
	return "${status}"
}

# begin_modules runs them beside the step that follows, which uses the processors
# while they wait.
begin_modules() {
	rm -f "${besides}"/*
	(
		events="${besides}/events" flaky="${besides}/flaky" note="" began="${SECONDS}"
		modules >"${besides}/output" 2>&1
		status=$?
		printf '%s, %d s beside' "${note}" "$((SECONDS - began))" >"${besides}/note"
		exit "${status}"
	) &
	beside=$!
}

# end_modules waits for them, and prints and counts what they did.
end_modules() {
	local status waited=0
	while kill -0 "${beside}" 2>/dev/null; do
		sleep 1
		waited=$((waited + 1))
		[ $((waited % 30)) -ne 0 ] || printf '… still running after %d s\n' "${waited}"
	done
	wait "${beside}"
	status=$?
	beside=""
	grep -v '^… still running' "${besides}/output"
	cat "${besides}/events" >>"${events}"
	[ ! -f "${besides}/flaky" ] || cat "${besides}/flaky" >>"${flaky}"
	note="$(cat "${besides}/note")"
	return "${status}"
}

# tools_folder is where tools are cached, for all clones.
tools_folder() { echo "${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}"; }

# runner builds gotestsum, pinned in hack/tools/test, into the cache of tools on
# first use.
runner() {
	local version cache
	version="$(sed -n 's|^require gotest.tools/gotestsum \(v[^ ]*\).*|\1|p' hack/tools/test/go.mod)"
	cache="$(tools_folder)/gotestsum-${version}-$(go env GOVERSION)"
	gotestsum="${cache}/gotestsum"
	[ ! -x "${gotestsum}" ] || return 0
	mkdir -p "${cache}"
	(cd hack/tools/test && GOFLAGS=-trimpath GOWORK=off go build -o "${cache}/.gotestsum.$$" gotest.tools/gotestsum) || return 1
	mv "${cache}/.gotestsum.$$" "${gotestsum}"
}

# fetch downloads what the steps after tools compile, while that one uses the processors.
# Only where nothing was ever checked: elsewhere most of it is there.
fetch() {
	[ ! -e "$(tools_folder)/verified" ] || return 0
	local module
	for module in hack/tools/test hack/tools/lint hack/tools/codegen hack/tools/rules . test/bench test/console; do
		# Whoever needs what could not be fetched says so.
		(cd "${module}" && GOWORK=off go mod download) >/dev/null 2>&1
	done
}

tools() {
	if [ -n "${building}" ]; then
		wait "${building}"
		building=""
		cat "${besides}/tools"
	else
		fetch &
	fi
	PENSTOCK_TOOLS="$(GOGC="${GOGC:-400}" hack/build-tools.sh)" || return 1
	export PENSTOCK_TOOLS
	note="${PENSTOCK_TOOLS}"
}

# begin_tools builds the control plane beside verify, where nothing was ever checked: both
# compile for minutes, and neither uses all processors all the time.
begin_tools() {
	[ ! -e "$(tools_folder)/verified" ] || return 0
	fetch &
	GOGC="${GOGC:-400}" hack/build-tools.sh >/dev/null 2>"${besides}/tools" &
	building=$!
}

# content PATH... prints the names of the files in these paths, and of what is in each.
content() {
	local files
	# A file that was removed but not committed is still listed.
	files="$(git ls-files --cached --others --exclude-standard -- "$@" | sort |
		while IFS= read -r file; do [ ! -f "${file}" ] || printf '%s\n' "${file}"; done)"
	echo "${files}"
	git hash-object --no-filters --stdin-paths <<<"${files}"
}

# program builds the program once for all tests that run it. Its folder is named by its
# content and by that of the files which commands of tests read: results that go test
# remembers hold for these only. go test itself sees no file that another process reads, and
# none outside of the module.
program() {
	local programs="${PENSTOCK_TOOLS%/*}/program" built sum
	mkdir -p "${programs}"
	built="$(mktemp -d "${programs}/.XXXXXX")"
	# The state of the work tree is no input of a test; without it the version is
	# always "devel".
	build GOWORK=off go build -buildvcs=false -ldflags='-s -w' -o "${built}/penstock" ./cmd/penstock ||
		{ rm -rf "${built}"; return 1; }
	sum="$({ git hash-object --no-filters "${built}/penstock"; content artifacts hack/tools/rules; } | git hash-object --stdin | cut -c1-16)"
	# Another run may build the same one now; what was not used for a day may go.
	[ -e "${programs}/${sum}" ] || mv -T "${built}" "${programs}/${sum}" 2>/dev/null || true
	rm -rf "${built}"
	touch "${programs}/${sum}"
	find "${programs}" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
	export PENSTOCK_PROGRAM="${programs}/${sum}/penstock"
	note="${sum}"
}

# passed SCRIPT prints the file that exists when the script has passed for the
# content that it looks at, in any clone; nothing when it does not say, in a line
# "# inputs: PATH...", what that is.
passed() {
	local inputs=()
	read -ra inputs < <(sed -n 's/^# inputs: //p' "$1")
	[ "${#inputs[@]}" -gt 0 ] || return 0
	printf '%s/verified/%s-%s\n' "$(tools_folder)" "$(basename "$1" .sh)" \
		"$({ go env GOVERSION; content "$1" "${inputs[@]}"; } | git hash-object --stdin)"
}

verify() {
	local script bad=0 began stamp
	for script in hack/verify-*.sh; do
		began="${SECONDS}"
		say "-- ${script}"
		stamp="$(passed "${script}")"
		if [ -n "${stamp}" ] && [ -e "${stamp}" ] && [ "${FULL:-}" != 1 ]; then
			touch "${stamp}"
			say "   passed before, for the same content"
			continue
		fi
		if build "${script}"; then
			[ -z "${stamp}" ] || { mkdir -p "${stamp%/*}" && : >"${stamp}"; }
		else
			bad=$((bad + 1))
			note+="${script} "
		fi
		say "   $((SECONDS - began)) s"
	done
	find "$(tools_folder)/verified" -type f -mtime +30 -delete 2>/dev/null
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
[ $# -gt 0 ] || steps=(tools verify tests)
runner || exit 1
for name in "${steps[@]}"; do
	case "${name}" in
	tools)
		case " ${steps[*]} " in *" tools verify "*) begin_tools ;; esac
		[ -n "${building}" ] || step tools tools || break
		;;
	verify)
		step verify verify
		[ -z "${building}" ] || step tools tools || break
		;;
	unit | cluster | integration | e2e | tests)
		# Some tests need the control plane and the program: built once here, with
		# progress, and not inside of a test, where go test hides it.
		[ -n "${PENSTOCK_TOOLS:-}" ] || tools || { failed+=(tools); break; }
		[ "${name}" = unit ] || step program program || break
		case "${name}" in unit | tests) begin_modules ;; esac
		step "${name}" group "${name}"
		case "${name}" in unit | tests) step "modules" end_modules ;; esac
		;;
	*)
		say "error: there is no step '${name}'; steps are tools, verify, tests, unit, cluster, integration, e2e" >&2
		exit 2
		;;
	esac
done
step "nothing left" nothing_left

say "" "== summary (${SECONDS} s)"
printf '%s\n' "${summary[@]}"
slowest
if [ -s "${flaky}" ]; then
	say "" "failed first and passed alone, which is a defect:"
	cat "${flaky}"
	reasons
fi
if [ "${#failed[@]}" -gt 0 ]; then
	say "" "what failed, its first lines:"
	reasons
	say "" "FAILED: ${failed[*]}"
	exit 1
fi
say "all is well"
