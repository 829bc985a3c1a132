#!/usr/bin/env bash
# Installs the checkers of the console from npm, in the versions of hack/tools/console, into the
# cache of tools. It prints the folder of their modules. They are not shipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v npm >/dev/null || { echo "there is no npm: apt-get install npm" >&2; exit 1; }
sum="$(git hash-object --no-filters hack/tools/console/package-lock.json | cut -c1-12)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/console-${sum}"
if [ ! -d "${cache}/node_modules" ]; then
	mkdir -p "${cache%/*}"
	work="$(mktemp -d "${cache%/*}/.console.XXXXXX")"
	trap 'rm -rf "${work}"' EXIT
	cp hack/tools/console/package.json hack/tools/console/package-lock.json "${work}/"
	(cd "${work}" && npm ci --ignore-scripts --no-audit --no-fund >&2)
	# Another process may have been faster.
	mv -T "${work}" "${cache}" 2>/dev/null || [ -d "${cache}/node_modules" ]
fi
echo "${cache}/node_modules"
