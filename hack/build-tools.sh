#!/usr/bin/env bash
# Builds a Kubernetes control plane from the module proxy into a cache outside
# the work tree, and prints the folder on stdout. Progress goes to stderr.
#
#   hack/build-tools.sh            the default version, v1.36
#   hack/build-tools.sh v1.36      one pinned module below hack/tools
#
# The cache is ${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock/tools}/<version>-<hash>,
# where the hash covers go.mod, go.sum and this script: a changed pin builds
# afresh, a second run finds everything and returns at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

release="${1:-v1.36}"
module="hack/tools/${release}"
say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

[ -f "${module}/go.mod" ] || fail "no control plane is pinned for '${release}': have $(cd hack/tools && ls -d v* | tr '\n' ' ')"
command -v go >/dev/null || fail "Go is not on PATH: install Go 1.26 or later (https://go.dev/dl) and run this again"

kubernetes="$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v\([0-9.]*\).*|\1|p' "${module}/go.mod")"
hash="$(cat "${module}/go.mod" "${module}/go.sum" "${module}/etcd/main.go" hack/build-tools.sh | sha256sum | cut -c1-12)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/v${kubernetes}-${hash}"

# name, package, what it usually takes on two cores with an empty build cache
programs=(
	"kube-apiserver           k8s.io/kubernetes/cmd/kube-apiserver           3 min"
	"kube-controller-manager  k8s.io/kubernetes/cmd/kube-controller-manager  1 min"
	"kube-scheduler           k8s.io/kubernetes/cmd/kube-scheduler           20 s"
	"kubectl                  k8s.io/kubernetes/cmd/kubectl                  20 s"
	"etcd                     ./etcd                                         20 s"
	"kwok                     sigs.k8s.io/kwok/cmd/kwok                      30 s"
)

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

# One build at a time: a second caller waits, then finds everything built.
mkdir -p "${cache}"
exec 9>"${cache}/.lock"
if command -v flock >/dev/null; then flock 9; fi
if complete; then
	echo "${cache}"
	exit 0
fi

say "fetching the sources of Kubernetes ${kubernetes}"
(cd "${module}" && go mod download) >&2 ||
	fail "the Go module proxy ($(go env GOPROXY)) did not answer; check the network or GOPROXY and run this again"

minor="${kubernetes#*.}"
minor="${minor%%.*}"
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X ${package}.gitVersion=v${kubernetes} -X ${package}.gitMajor=1 -X ${package}.gitMinor=${minor} -X ${package}.gitTreeState=clean"
done

n=0
for program in "${programs[@]}"; do
	read -r name package usual <<<"${program}"
	n=$((n + 1))
	[ -x "${cache}/${name}" ] && continue
	say "building ${name} ${kubernetes}, ${n} of ${#programs[@]}, usually ${usual}"
	# Through a temporary name: an interrupted build leaves no half program.
	(cd "${module}" && CGO_ENABLED=0 go build -trimpath -ldflags "${ldflags}" -o "${cache}/.${name}.partial" "${package}") >&2 ||
		fail "building ${name} failed; the compiler's output is above"
	mv "${cache}/.${name}.partial" "${cache}/${name}"
done

# kwok's stages, which make Nodes ready and Pods run without a container.
kwok="$(cd "${module}" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)"
mkdir -p "${cache}/kwok-stages"
for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
	pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
	install -m 0644 "${kwok}/kustomize/stage/${stage}.yaml" "${cache}/kwok-stages/$(basename "${stage}").yaml"
done
echo "${cache}"
