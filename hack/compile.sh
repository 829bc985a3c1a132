#!/usr/bin/env bash
# compile.sh NAME FLAG... -- PACKAGE... fetches the sources and runs `go build FLAG... PACKAGE...`
# in the working folder. On stderr it prints the number of compiled packages, the number to compile,
# and the elapsed time. GOFLAGS holds the flags that affect compilation.
set -euo pipefail

name="$1" flags=()
shift
while [ "$1" != -- ]; do
	flags+=("$1")
	shift
done
shift
say() { printf '%s\n' "$*" >&2; }
say "building ${name}"
# Go prints a line for each of some hundred fetched modules.
fetched() { awk '/^go: downloading/ { if (++n % 50 == 0) { print n " modules fetched so far"; fflush() } next } { print; fflush() }' >&2; }
# Packages in the build cache are not stale.
listed="$({ go list -deps -f '{{if .Stale}}x{{end}}' "$@" 2>&1 >&3 | fetched; } 3>&1)" || {
	say "error: the sources are not complete, Go's message is above; if it is about the network, check that the module proxy of \`go env GOPROXY\` answers and run this again"
	exit 1
}
stale="$(grep -c x <<<"${listed}")" || true
progress() { say "${compiled} of ${stale} packages, $((SECONDS / 60)) min $((SECONDS % 60)) s so far"; }

# go build -v prints a line for each package that it compiles.
compiled=0 last="${SECONDS}"
{
	status=0
	go build -v "${flags[@]}" "$@" 2>&1 || status=$?
	echo "exit ${status}"
} | {
	status=1
	while :; do
		read -r -t 15 line && got=0 || got=$?
		if [ "${got}" -gt 128 ]; then
			line=""
		elif [ "${got}" -ne 0 ]; then
			break
		fi
		case "${line}" in
		"exit "[0-9]*) status="${line#exit }" ;;
		*[!A-Za-z0-9._~/-]*) say "${line}" ;;
		?*) compiled=$((compiled + 1)) ;;
		esac
		if [ $((SECONDS - last)) -ge 15 ]; then
			progress
			last="${SECONDS}"
		fi
	done
	[ "${compiled}" -lt 20 ] || progress
	exit "${status}"
}
