#!/usr/bin/env bash
# Installs a release from its files alone, in an empty folder: it verifies them, runs the quick
# start of README.md against a control plane of this machine, and installs the image by its
# digest on a real node, which needs Linux and root.
#
#   hack/release-test.sh            makes a release for this machine first
#   hack/release-test.sh DIR        takes one that exists
#   KEY=penstock.pub hack/release-test.sh DIR   verifies its signatures, too
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
checkout="${PWD}"
. hack/tags.sh
export CGO_ENABLED=0

scratch="$(mktemp -d)"
server='' node=''
home="${HOME}"
clean() {
	local status=$?
	[ "${status}" -eq 0 ] || tail -n 20 "${scratch}/empty/penstock.log" 2>/dev/null || true
	[ -z "${server}" ] || kill "${server}" 2>/dev/null || true
	(cd "${checkout}" && HOME="${home}" go run ./hack/cluster -dir "${scratch}/cluster" down) || true
	if [ -n "${node}" ]; then
		[ "${status}" -eq 0 ] || kubectl describe pods --namespace penstock-system || true
		cluster down || true
	fi
	rm -rf "${scratch}"
	exit "${status}"
}
trap clean EXIT
step() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

release="${1:-}"
key="${KEY:+$(realpath "${KEY}")}"
architecture="$(go env GOARCH)"
if [ -z "${release}" ]; then
	step "a release for this machine"
	openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "${scratch}/key.pem"
	openssl pkey -in "${scratch}/key.pem" -pubout -out "${scratch}/penstock.pub"
	go run ./hack/release all -version v0.0.1-test -platforms "linux/${architecture}" -out "${scratch}/release" -key "${scratch}/key.pem"
	release="${scratch}/release" key="${scratch}/penstock.pub"
fi
release="$(cd "${release}" && pwd)"

step "files"
(cd "${release}" && sha256sum --check --quiet checksums.txt && cat checksums.txt)
version="$(cd "${release}" && ls penstock_*_image.tar.gz)"
version="${version#penstock_}"
version="${version%_image.tar.gz}"
tar -tzf "${release}/penstock-${version#v}.tgz" | grep -x 'penstock/values.schema.json' >/dev/null || fail "the chart has no schema"

step "install, in an empty folder"
mkdir "${scratch}/empty" "${scratch}/empty/bin"
cd "${scratch}/empty"
tar -xzf "${release}/penstock_${version}_linux_${architecture}.tar.gz" -C bin
tar -xzf "${release}/kubectl-penstock_${version}_linux_${architecture}.tar.gz" -C bin
tar -xzf "${release}/penstock_${version}_manifests.tar.gz"
tools="$("${checkout}/hack/build-tools.sh")"
# Only Go's caches of the user's home folder are used.
export PATH="${PWD}/bin:${tools}:${PATH}" KUBECACHEDIR="${scratch}/kubectl-cache" HOME="${scratch}/empty"
[ "$(penstock version | head -n 1)" = "${version}" ] || fail "the server is $(penstock version), want ${version}"
# The command also requests the server's version, but no server runs yet.
{ kubectl penstock version 2>/dev/null || true; } | grep -F "${version}" || fail "the plugin is not ${version}"

if [ -n "${key}" ]; then
	step "signature, provenance and image"
	kubectl penstock verify-release "${release}" --key "${key}" --source https://github.com/penstock-project/penstock
	cp -r "${release}" changed
	printf 'changed' >>changed/NOTES.md
	! kubectl penstock verify-release changed --key "${key}" || fail "a changed file is verified"
	rm -r changed
fi

step "the quick start"
(cd "${checkout}" && HOME="${home}" go run ./hack/cluster -dir "${scratch}/cluster" up >/dev/null)
export KUBECONFIG="${scratch}/cluster/kubeconfig"
penstock serve --register --kubeconfig "${KUBECONFIG}" --data-dir ./data --secure-port 0 >penstock.log 2>&1 &
server=$!
for _ in $(seq 60); do
	! kubectl penstock check >check.log 2>&1 || break
	kill -0 "${server}" || fail "the server ended"
	sleep 1
done
kubectl penstock check
examples=artifacts/examples
kubectl penstock deploy "${examples}/lighthouse/v1.0.0" --name lighthouse --version v1.0.0 --yes
kubectl penstock deploy "${examples}/lighthouse/v1.1.0" --name lighthouse --version v1.1.0 --yes
kubectl penstock status lighthouse
kubectl penstock diff lighthouse --live
kubectl penstock rollback lighthouse --yes --accept=critical --cause "trying it"
kubectl penstock status lighthouse | grep -F 'v1.0.0: Active' || fail "the rollback did not bring v1.0.0 back"
cd "${examples}/rebalancing"
kubectl apply -f definitions.yaml
kubectl wait --for=condition=Established crd --all
kubectl apply -f cluster.yaml -f plan-without-reboots.yaml
kubectl wait --for=jsonpath='{.status.phase}'=ReviewRequired configurationplan/rebalance --timeout=60s
kubectl penstock plan approve rebalance --wait --yes --hash "$(kubectl get configurationplan rebalance -o jsonpath='{.status.planHash}')"
kubectl get configurationplan rebalance -o jsonpath='{.status.phase}' | grep -Fx Completed
cd - >/dev/null

step "the image, installed on a real node"
kill "${server}"
wait "${server}" || true
server=''
(cd "${checkout}" && HOME="${home}" go run ./hack/cluster -dir "${scratch}/cluster" down)
tar -xzf "${release}/penstock_${version}_image.tar.gz"
grep -q "\"${version}\"" image/index.json || fail "the image is not of ${version}"
digest="$(grep -o 'sha256:[0-9a-f]\{64\}' "${release}/NOTES.md" | head -n 1)"
if [ -n "${key}" ]; then
	tar -xzf "${release}/penstock_${version}_image_signatures.tar.gz"
	signed="$(kubectl penstock verify-release "${release}" --key "${key}" | sed -n 's/.*image: \(sha256:[0-9a-f]*\) is signed.*/\1/p')"
	[ "${signed}" = "${digest}" ] || fail "verify-release names the image ${signed}, and NOTES.md ${digest}"
fi
repository=registry.example.com/penstock
cluster() { (cd "${checkout}" && HOME="${home}" go run ./hack/cluster -dir "${scratch}/node" -node real "$@"); }
node=1
cluster up >/dev/null
cluster load "${scratch}/empty/image" "${repository}:${version}"
export KUBECONFIG="${scratch}/node/kubeconfig"
mkdir installation
cat >installation/kustomization.yaml <<-EOF
	resources: [../artifacts/deploy/embedded]
	images: [{name: penstock, newName: ${repository}, digest: "${digest}"}]
EOF
kubectl apply --server-side -k installation
kubectl rollout status deployment/penstock --namespace penstock-system --timeout=5m
kubectl penstock check --timeout 5m
running="$(kubectl get pods --namespace penstock-system --selector app.kubernetes.io/name=penstock -o jsonpath='{.items[*].status.containerStatuses[*].imageID}')"
[ "${running}" = "${repository}@${digest}" ] || fail "the Pod runs ${running}, want ${repository}@${digest}"
mkdir workload
cat >workload/pause.yaml <<-'EOF'
	apiVersion: v1
	kind: Namespace
	metadata: {name: workload}
	---
	apiVersion: apps/v1
	kind: Deployment
	metadata: {name: pause, namespace: workload}
	spec:
	  selector: {matchLabels: {app: pause}}
	  template:
	    metadata: {labels: {app: pause}}
	    spec: {containers: [{name: pause, image: "penstock.local/pause:1"}]}
EOF
kubectl penstock deploy workload --name workload --version v1.0.0 --yes
kubectl penstock status workload | grep -F 'v1.0.0: Active'
printf '\nthe quick start works from the archives of %s alone, and a real node runs its image %s\n' "${version}" "${digest}"
