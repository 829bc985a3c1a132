#!/usr/bin/env bash
# Fails if the generated code differs from the output of hack/update-codegen.sh for pkg/apis. It
# works on a copy and does not change the tree.
#
# inputs: pkg/apis pkg/generated hack/update-codegen.sh hack/boilerplate.go.txt hack/models-schema hack/tools/codegen go.mod go.sum
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy="$(mktemp -d)"
trap 'rm -rf "${copy}"' EXIT

mkdir -p "${copy}/hack/tools" "${copy}/pkg"
cp go.mod go.sum "${copy}/"
cp hack/update-codegen.sh hack/boilerplate.go.txt "${copy}/hack/"
cp -R hack/models-schema "${copy}/hack/"
cp -R hack/tools/codegen "${copy}/hack/tools/"
cp -R pkg/apis pkg/generated "${copy}/pkg/"

log="${copy}/update.log"
if ! "${copy}/hack/update-codegen.sh" >"${log}" 2>&1; then
	cat "${log}" >&2
	echo "error: hack/update-codegen.sh failed, see above" >&2
	exit 1
fi

stale="$(diff -rq pkg/apis "${copy}/pkg/apis" || true)
$(diff -rq pkg/generated "${copy}/pkg/generated" || true)"
stale="$(sed -e "s|${copy}/|(generated) |g" -e '/^$/d' <<<"${stale}")"
if [ -n "${stale}" ]; then
	printf '%s\n' "${stale}" >&2
	# A few lines show the change, and leave the message below visible.
	{ diff -ru pkg/apis "${copy}/pkg/apis" || true; diff -ru pkg/generated "${copy}/pkg/generated" || true; } |
		grep '^[-+]' | sed -n '1,40p' >&2
	echo "error: generated code is not current: run hack/update-codegen.sh and commit what it changes" >&2
	exit 1
fi
echo "generated code is current" >&2
