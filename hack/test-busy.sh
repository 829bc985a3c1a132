#!/usr/bin/env bash
# Runs all tests once while two busy loops take processors away from them, with
# nothing remembered of earlier runs: a test that fails under load is a defect.
#
#   hack/test-busy.sh            unit and cluster
#   hack/test-busy.sh e2e        some steps of hack/test.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

loops=()
# shellcheck disable=SC2329 # by trap
end() { kill "${loops[@]}" 2>/dev/null || true; }
trap end EXIT
for _ in 1 2; do
	while :; do :; done &
	loops+=($!)
done

steps=("$@")
[ $# -gt 0 ] || steps=(tests)
RERUN=0 TESTFLAGS="-count=1 ${TESTFLAGS:-}" hack/test.sh "${steps[@]}"
