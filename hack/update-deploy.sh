#!/usr/bin/env bash
# Writes artifacts/deploy from the code: the rights that Penstock uses, the registration of its
# webhooks, and the roles of users. It copies the common parts to artifacts/chart. Tests of
# pkg/server/deployment fail when these are outdated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p artifacts/deploy
go test ./pkg/server/deployment -run '^TestDeploy$' -count=1 -update
go test ./pkg/server/deployment -run '^TestChart$' -count=1 -update
