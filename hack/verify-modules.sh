#!/usr/bin/env bash
# Fails when a go.mod or go.sum, the main one or one of the nested modules that
# pin tools, is not what go mod tidy would make of it. Nothing is changed.
#
#   hack/verify-modules.sh                 all modules but those of hosts other than the default
#   hack/verify-modules.sh hack/tools/lint one
#
# The modules of the other hosts are checked in the slices of these hosts: to tidy one takes the
# whole source of its Kubernetes.
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
