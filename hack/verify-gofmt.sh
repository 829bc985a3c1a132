#!/usr/bin/env bash
# Fails when a Go file is not formatted as gofmt does it, and shows the difference.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files=()
while IFS= read -r file; do
	# A file that was removed but not committed is still listed.
	[ -f "${file}" ] && files+=("${file}")
done < <(git ls-files --cached --others --exclude-standard -- '*.go' ':!:**/testdata/**')

difference="$(gofmt -d "${files[@]}")" || { printf '%s\n' "${difference}" >&2; exit 1; }
if [ -n "${difference}" ]; then
	printf '%s\n' "${difference}" >&2
	echo "error: run gofmt -w on the files above" >&2
	exit 1
fi
echo "${#files[@]} Go files are formatted"
