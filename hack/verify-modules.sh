#!/usr/bin/env bash
# Fails if go mod tidy would change a go.mod or go.sum of the main module, or of a nested module
# that pins tools. It changes nothing.
#
#   hack/verify-modules.sh                 all modules but those of hosts other than the default
#   hack/verify-modules.sh hack/tools/lint one
#
# The slices of the other hosts check their modules: go mod tidy needs the whole source of their
# Kubernetes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

modules=("$@")
if [ "${#modules[@]}" -eq 0 ]; then
	modules=("hack/tools/$(sed -n 's/^default=//p' hack/build-tools.sh)")
	while IFS= read -r file; do
		modules+=("$(dirname "${file}")")
	done < <(git ls-files --cached --others --exclude-standard -- go.mod '**/go.mod' ':!:**/testdata/**' ':!:hack/tools/v1.*')
fi

untidy=()
for module in "${modules[@]}"; do
	(cd "${module}" && GOFLAGS= GOWORK=off go mod tidy -diff) || untidy+=("${module}")
done
if [ "${#untidy[@]}" -gt 0 ]; then
	echo "error: go mod tidy would change ${untidy[*]} (the differences are above): run it there" >&2
	exit 1
fi
echo "${#modules[@]} modules are tidy"
