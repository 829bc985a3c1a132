#!/usr/bin/env bash
# Fails if a library of the console differs from VERSIONS, or if TypeScript finds an error in its
# modules. That needs npm. Without npm it prints a message, or fails with PENSTOCK_CONSOLE=required,
# as in CI.
#
# inputs: pkg/console/web hack/tools/console hack/console-tools.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

vendor=pkg/console/web/vendor
listed=0
while read -r file package version _ sum; do
	[ "${file}" != '#' ] || continue
	is="$(sha256sum "${vendor}/${file}" | cut -d ' ' -f 1)"
	if [ "${is}" != "${sum}" ]; then
		echo "error: ${vendor}/${file} is not that of ${package} ${version}: hack/update-console.sh takes it from npm" >&2
		exit 1
	fi
	listed=$((listed + 1))
done <"${vendor}/VERSIONS"
there="$(find "${vendor}" -name '*.js' | wc -l | tr -d ' ')"
if [ "${listed}" -ne "${there}" ]; then
	echo "error: ${vendor} has ${there} modules, and VERSIONS lists ${listed}" >&2
	exit 1
fi

if ! modules="$(hack/console-tools.sh)"; then
	[ "${PENSTOCK_CONSOLE:-}" != required ] || { echo "error: npm or its registry is missing, and TypeScript is required" >&2; exit 1; }
	echo "${listed} libraries are as listed; types are not checked: npm or its registry is missing"
	exit 0
fi
"${modules}/.bin/tsc" -p hack/tools/console
echo "${listed} libraries are as listed, and TypeScript finds nothing"
