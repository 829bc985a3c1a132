#!/usr/bin/env bash
# Writes artifacts/deploy: the rights that Penstock uses, and the registration of its
# webhooks and the roles of users, from what the code asks for; then the parts of
# artifacts/chart that are the same. Tests of pkg/server/deployment say when they are old.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p artifacts/deploy
go test ./pkg/server/deployment -run '^TestDeploy$' -count=1 -update
go test ./pkg/server/deployment -run '^TestChart$' -count=1 -update
