#!/usr/bin/env bash
# Builds kubelet and kube-proxy of the version that hack/tools/node pins, and containerd of
# hack/tools/containerd, unpacks runc, CNI plugins and nft of Debian's packages (nothing is
# installed), and prints the folder of all on stdout. Progress goes to stderr. A real node
# needs them: make cluster-up NODE=real.
#
# The cache is ${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock/tools}/node-<version>-<hash>.
# Its file `packages` has the versions of the packages, which are those that apt offers when
# the folder is made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=hack/tools/node
containerd=hack/tools/containerd
packages=(runc containernetworking-plugins nftables
	libnftables1 libnftnl11 libmnl0 libjansson4 libedit2 libbsd0 libmd0 libxtables12 libseccomp2)
say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

[ "$(uname -s)" = Linux ] || fail "a real node needs Linux: this is $(uname -s)"
for program in go git apt-get dpkg-deb; do
	command -v "${program}" >/dev/null ||
		fail "${program} is not on PATH; a real node takes ${packages[*]:0:3} from the packages of Debian or Ubuntu, unpacked and not installed"
done
export GOFLAGS= GOWORK=off CGO_ENABLED=0

kubernetes="$(sed -nE 's|^(require )?[[:space:]]*k8s.io/kubernetes v([0-9.]*).*|\2|p' "${module}/go.mod")"
hash="$(cat "${module}/go.mod" "${module}/go.sum" "${module}"/*/*.go "${containerd}/go.mod" "${containerd}/go.sum" hack/node-tools.sh | git hash-object --stdin | cut -c1-12)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/node-v${kubernetes}-${hash}"
if [ -e "${cache}/packages" ]; then
	echo "${cache}"
	exit 0
fi

# One at a time. All is made under a temporary name, so that nothing is half there.
mkdir -p "${cache}"
exec 9>"${cache}/.lock"
flock 9
if [ -e "${cache}/packages" ]; then
	echo "${cache}"
	exit 0
fi
partial="${cache}/.partial.$$"
trap 'rm -rf "${partial}"' EXIT
mkdir -p "${partial}/root" "${partial}/deb"

say "unpacking ${packages[*]:0:3} and their libraries"
(cd "${partial}/deb" && apt-get download "${packages[@]}" >/dev/null 2>"${partial}/log") ||
	fail "apt-get download failed (does \`apt-get update\` work?): $(cat "${partial}/log")"
for package in "${partial}"/deb/*.deb; do
	dpkg-deb -x "${package}" "${partial}/root"
	dpkg-deb -W "${package}" >>"${partial}/packages"
done

say "building kubelet and kube-proxy ${kubernetes}, usually 5 min, or 1 min after the control plane"
minor="${kubernetes#*.}"
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X ${package}.gitVersion=v${kubernetes} -X ${package}.gitMajor=1 -X ${package}.gitMinor=${minor%%.*} -X ${package}.gitTreeState=clean"
done
(cd "${module}" && go build -trimpath -ldflags "${ldflags}" -o "${partial}/" ./pause k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kube-proxy) >&2 ||
	fail "building failed; the compiler's output is above"
say "building containerd, usually 1 min"
programs=(containerd containerd-shim-runc-v2 ctr)
(cd "${containerd}" && go build -trimpath -ldflags "-s -w" -o "${partial}/" "${programs[@]/#/github.com/containerd/containerd/v2/cmd/}") >&2 ||
	fail "building failed; the compiler's output is above"
rm -rf "${cache}/root"
mv "${partial}"/{root,pause,kubelet,kube-proxy} "${programs[@]/#/${partial}/}" "${cache}/"
mv "${partial}/packages" "${cache}/packages"
echo "${cache}"
