#!/usr/bin/env bash
# Generates all code that is derived from pkg/apis. Deep copies, defaults, conversions and OpenAPI
# model names are next to the types. OpenAPI definitions, clientset, listers, informers and apply
# configurations are in pkg/generated.
#
#   hack/update-codegen.sh
#
# The generators are pinned in hack/tools/codegen and compiled into
# ${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock/tools}/codegen-<version>.
# The first run takes a minute or two, later ones about 20 seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

command -v go >/dev/null || fail "Go is not on PATH: install Go 1.26 or later (https://go.dev/dl) and run this again"
# The caller's environment must not change the generated code. -trimpath, as in hack/test.sh, lets
# both share compiled packages.
export GOFLAGS=-trimpath GOWORK=off LC_ALL=C

module="$(go list -m)"
version="$(cd hack/tools/codegen && go list -m -f '{{.Version}}' k8s.io/code-generator)"
machinery="$(go list -m -f '{{.Version}}' k8s.io/apimachinery)"
[ "${version}" = "${machinery}" ] ||
	fail "k8s.io/code-generator is ${version} in hack/tools/codegen, k8s.io/apimachinery is ${machinery} in go.mod: make them equal"

say "generators ${version}"
(cd hack/tools/codegen && go mod download k8s.io/code-generator)
generator="$(cd hack/tools/codegen && go list -m -f '{{.Dir}}' k8s.io/code-generator)"
export GOBIN="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/codegen-${version}"
mkdir -p "${GOBIN}"
# shellcheck disable=SC1091 # in the module cache
source "${generator}/kube_codegen.sh"

# Like all files, generated files have no licence header, but they have a marker for linters.
boilerplate=hack/boilerplate.go.txt
out=pkg/generated
mkdir -p "${out}"/{openapi,applyconfiguration,clientset,listers,informers}

say "helpers beside the types in pkg/apis"
kube::codegen::gen_helpers --boilerplate "${boilerplate}" pkg/apis

say "OpenAPI definitions in ${out}/openapi"
kube::codegen::gen_openapi \
	--output-dir "${out}/openapi" \
	--output-pkg "${module}/${out}/openapi" \
	--extra-pkgs k8s.io/apimachinery/pkg/util/intstr \
	--output-model-name-file zz_generated.model_name.go \
	--report-filename "${out}/openapi/violations.report" \
	--update-report \
	--boilerplate "${boilerplate}" \
	pkg/apis

say "schemas for apply configurations"
schemas="$(mktemp)"
trap 'rm -f "${schemas}"' EXIT
go run ./hack/models-schema >"${schemas}"

# The generators' plural of RevisionDiff would be RevisionDifves.
say "clients in ${out}"
kube::codegen::gen_client \
	--plural-exceptions RevisionDiff:RevisionDiffs \
	--with-watch \
	--with-applyconfig \
	--applyconfig-openapi-schema "${schemas}" \
	--output-dir "${out}" \
	--output-pkg "${module}/${out}" \
	--boilerplate "${boilerplate}" \
	pkg/apis

# applyconfiguration-gen looks up a type's schema by its Go path. If +k8s:openapi-model-package sets
# another name, it silently treats the type as untyped: lists would lose their keys in Extract and
# in fake clients.
grep -q 'lifecycleState' "${out}/applyconfiguration/internal/internal.go" ||
	fail "${out}/applyconfiguration/internal/internal.go does not know our fields: +k8s:openapi-model-package in doc.go must be the Go path of the package, in reverse domain notation"
say "done"
