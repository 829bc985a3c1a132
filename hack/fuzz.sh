#!/usr/bin/env bash
# Fuzzes every target of the project in turn, each for ${FUZZTIME:-30s}. What a
# target finds lands in its testdata/fuzz, where go test repeats it from then on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh

failed=()
while IFS=: read -r file target; do
	package="./$(dirname "${file}")"
	echo "== ${target} in ${package}, ${FUZZTIME:-30s}"
	go test -run '^$' -fuzz "^${target}\$" -fuzztime "${FUZZTIME:-30s}" "${package}" || failed+=("${package} ${target}")
done < <(git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/:func /:/')

if [ "${#failed[@]}" -gt 0 ]; then
	printf 'error: failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
