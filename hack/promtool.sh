#!/usr/bin/env bash
# promtool.sh ARGUMENT... runs promtool of Prometheus, which is pinned in hack/tools/promtool and
# compiled into the cache of tools on first use.
set -euo pipefail
tools="$(cd "$(dirname "${BASH_SOURCE[0]}")/tools/promtool" && pwd)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/promtool-$(cat "${tools}"/go.mod "${tools}"/go.sum | git hash-object --stdin | cut -c1-12)-$(go env GOVERSION)"
if [ ! -x "${cache}/promtool" ]; then
	echo "building promtool, usually 2 min" >&2
	mkdir -p "${cache}"
	# The tag omits the discovery of targets in clouds, and its clients.
	(cd "${tools}" && GOFLAGS='-trimpath -tags=remove_all_sd' GOWORK=off CGO_ENABLED=0 go build -ldflags='-s -w' -o "${cache}/.promtool.$$" github.com/prometheus/prometheus/cmd/promtool)
	mv "${cache}/.promtool.$$" "${cache}/promtool"
fi
exec "${cache}/promtool" "$@"
