#!/usr/bin/env bash
# Builds a Kubernetes control plane from the module proxy into a cache outside
# the work tree, and prints the folder on stdout. Progress goes to stderr.
#
#   hack/build-tools.sh                  the default version, v1.37
#   hack/build-tools.sh kubectl-batch    the same, and kubectl for tests that run it often
#   hack/build-tools.sh v1.34            one pinned module below hack/tools
#
# etcd and kwok always have the versions of the default control plane: kwok compiles with only one
# minor of Kubernetes' libraries. If the minor equals Penstock's libraries, the module versions are
# the same, so that Go compiles shared packages once (pkg/toolmodules_test.go).
#
# The cache is ${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock/tools}/<version>-<hash>,
# where the hash covers what decides the programs: the pinned module and the
# recipe below. A changed pin builds afresh, a second run finds everything and
# returns at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Count this up when the programs, their flags or their stages change below.
recipe=3

default=v1.37
release="${1:-${default}}" batch=""
[ "${release}" != kubectl-batch ] || release="${default}" batch=yes
module="hack/tools/${release}"
common="hack/tools/${default}"
compile="${PWD}/hack/compile.sh"
say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

[ -f "${module}/go.mod" ] || fail "no control plane is pinned for '${release}': have $(cd hack/tools && echo v*)"
command -v go >/dev/null || fail "Go is not on PATH: install Go 1.26 or later (https://go.dev/dl) and run this again"
command -v git >/dev/null || fail "git is not on PATH: install it and run this again"
# The caller's environment must not change the build.
GOFLAGS="-trimpath -tags=$(cat hack/tags)"
export GOFLAGS GOWORK=off CGO_ENABLED=0

# home ORIGIN prints the folder of the module that pins the program's module.
home() { if [ "$1" = k8s.io/kubernetes ]; then echo "${module}"; else echo "${common}"; fi; }
pinned() { sed -nE "s|^(require)?[[:space:]]*$1 v([0-9.]*).*|\2|p" "$(home "$1")/go.mod"; }
kubernetes="$(pinned k8s.io/kubernetes)"
# Each file is hashed once. The hash of the default version stays as it was.
recipes=("${module}/go.mod" "${module}/go.sum")
[ "${module}" = "${common}" ] || recipes+=("${common}/go.mod" "${common}/go.sum")
hash="$({ echo "${recipe}"; cat hack/tags "${recipes[@]}" "${common}"/*/*.go; } | git hash-object --stdin | cut -c1-12)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/v${kubernetes}-${hash}"

# name, pinned module, package
programs=(
	"kube-apiserver           k8s.io/kubernetes          k8s.io/kubernetes/cmd/kube-apiserver"
	"kube-controller-manager  k8s.io/kubernetes          k8s.io/kubernetes/cmd/kube-controller-manager"
	"kube-scheduler           k8s.io/kubernetes          k8s.io/kubernetes/cmd/kube-scheduler"
	"kubectl                  k8s.io/kubernetes          k8s.io/kubernetes/cmd/kubectl"
	"etcd                     go.etcd.io/etcd/server/v3  ./etcd"
	"kwok                     sigs.k8s.io/kwok           sigs.k8s.io/kwok/cmd/kwok"
)
# Only the default version has this program. With other versions, tests run kubectl.
[ -z "${batch}" ] ||
	programs+=("kubectl-batch            k8s.io/kubernetes          ./kubectlbatch")

complete() {
	local program
	for program in "${programs[@]}"; do
		[ -x "${cache}/${program%% *}" ] || return 1
	done
	[ -d "${cache}/kwok-stages" ]
}

if complete; then
	echo "${cache}"
	exit 0
fi

# Only one build runs at a time. A second caller waits, and then finds everything built.
mkdir -p "${cache}"
exec 9>"${cache}/.lock"
if command -v flock >/dev/null && ! flock -n 9; then
	say "waiting for another build of the control plane"
	flock 9
fi
if complete; then
	echo "${cache}"
	exit 0
fi

# The programs get their final folder only when all are complete, so that an interrupted build
# leaves no partial folder.
partial="${cache}/.partial.$$"
trap 'rm -rf "${partial}"' EXIT
mkdir -p "${partial}"

say "building a control plane of Kubernetes ${kubernetes}, once"
minor="${kubernetes#*.}"
minor="${minor%%.*}"
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X ${package}.gitVersion=v${kubernetes} -X ${package}.gitMajor=1 -X ${package}.gitMinor=${minor} -X ${package}.gitTreeState=clean"
done

for folder in "${module}" "${common}"; do
	names=() packages=()
	for program in "${programs[@]}"; do
		read -r name origin package <<<"${program}"
		if [ "$(home "${origin}")" = "${folder}" ] && [ ! -x "${cache}/${name}" ]; then
			names+=("${name}")
			packages+=("${package}")
		fi
	done
	[ "${#names[@]}" -gt 0 ] || continue
	# One command compiles a whole module: while it links a program, which uses one processor, it
	# compiles others.
	(cd "${folder}" && "${compile}" "${names[*]}" -ldflags "${ldflags}" -o "${partial}/" -- "${packages[@]}") || fail "building ${names[*]} failed; the compiler's output is above"
	for i in "${!names[@]}"; do
		mv "${partial}/${packages[i]##*/}" "${cache}/${names[i]}"
	done
done

# kwok's stages make Nodes ready, and make Pods run without containers.
kwok="$(cd "${common}" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)"
mkdir "${partial}/kwok-stages"
for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
	pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
	install -m 0644 "${kwok}/kustomize/stage/${stage}.yaml" "${partial}/kwok-stages/"
done
rm -rf "${cache}/kwok-stages"
mv "${partial}/kwok-stages" "${cache}/kwok-stages"
echo "${cache}"
