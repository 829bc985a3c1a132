#!/usr/bin/env bash
# Fails if an alert of artifacts/monitoring does not fire, or fires, against its tests. promtool
# needs plain rule files, which are the spec of a PrometheusRule.
#
# inputs: artifacts/monitoring hack/promtool.sh hack/tools/promtool
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scratch="$(mktemp -d)"
trap 'rm -rf "${scratch}"' EXIT
cp -r artifacts/monitoring/tests "${scratch}"
sed '1,/^spec:/d; s/^  //' artifacts/monitoring/prometheusrule.yaml >"${scratch}/prometheusrule.yaml"
hack/promtool.sh test rules "${scratch}"/tests/*.yaml
