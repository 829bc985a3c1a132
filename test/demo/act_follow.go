package main

import (
	"context"
	"fmt"
	"strings"
)

// followDefinitions has the needed part of OLM's definition of CatalogSource, and the definition
// for the second example of the design.
const followDefinitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: catalogsources.operators.coreos.com}
spec:
  group: operators.coreos.com
  scope: Namespaced
  names: {kind: CatalogSource, plural: catalogsources, singular: catalogsource}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, x-kubernetes-preserve-unknown-fields: true},
      status: {type: object, properties: {conditions: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type], items: {type: object, required: [type], properties: {
        type: {type: string}, status: {type: string}, reason: {type: string}, message: {type: string}, lastTransitionTime: {type: string, format: date-time}}}}}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.foo.example.com}
spec:
  group: foo.example.com
  scope: Namespaced
  names: {kind: Sample, plural: samples, singular: sample}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// followSource creates a CatalogSource of the design, with a template and an image.
const followSource = `kubectl apply -f - <<'EOF'
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: %s
  namespace: olm
  annotations:
    olm.catalogImageTemplate: "%s"
spec: {sourceType: grpc, image: "%s", displayName: My always up2date Catalog, publisher: Red Hat}
EOF`

// followTemplates makes the images of two catalogs follow the cluster: both examples of the design.
func followTemplates(ctx context.Context, d *demo) {
	d.unshown(ctx, fmt.Sprintf("kubectl apply -f - <<'EOF' &&%sEOF\nkubectl wait --for=condition=Established crd/catalogsources.operators.coreos.com crd/samples.foo.example.com --timeout=%s && kubectl create namespace olm && kubectl create namespace ns",
		followDefinitions, patience))
	d.note("OLM's CatalogSource, reduced, and a kind Sample are installed")
	version := get(d.shell.run(ctx, `kubectl get --raw /version | sed -n 's/.*"gitVersion": "v\([0-9]*\)\.\([0-9]*\).*/\1 \2/p'`))
	major, minor, _ := strings.Cut(strings.TrimSpace(version.Stdout), " ")
	template := "quay.io/kube-release-v{kube_major_version}/catalog:v{kube_major_version}.{kube_minor_version}"
	want := fmt.Sprintf("quay.io/kube-release-v%s/catalog:v%s.%s", major, major, minor)
	d.followed(ctx, "dynamic-catalog", template, "quay.io/kube-release-v1/catalog:v1.20", want,
		"the image follows the version of the cluster: "+want)
	d.followObject(ctx)
}

// unshown runs a command without printing it.
func (d *demo) unshown(ctx context.Context, command string) {
	out := get(d.shell.run(ctx, command))
	if out.ExitCode != 0 {
		panic(stop{fmt.Errorf("running %.60q: %s%s", command, out.Stdout, out.Stderr)})
	}
}

// followed creates a CatalogSource and checks its resulting image.
func (d *demo) followed(ctx context.Context, name, template, image, want, claim string) {
	d.show(ctx, fmt.Sprintf(followSource, name, template, image))
	d.show(ctx, fmt.Sprintf("kubectl wait -n olm catalogsource/%s --for=condition=TemplatesHaveResolved --timeout=%s", name, patience))
	got := d.show(ctx, fmt.Sprintf(`kubectl get -n olm catalogsource %s -o jsonpath='{.spec.image}{"\n"}{range .status.conditions[*]}{.type}{" "}{.status}{" "}{.reason}{": "}{.message}{"\n"}{end}'`, name))
	said := strings.Join([]string{want, "TemplatesHaveResolved True AllTemplatesResolved: catalog image reference was successfully resolved", "ResolvedImage True AllTemplatesResolved: " + want}, "\n")
	d.claim(strings.TrimSpace(got) == said, claim, said, got)
}

// followObject is the second example: a field of an object that an administrator grants to read.
// Kubernetes allows no upper case in names, so the object of the design is called mysample.
func (d *demo) followObject(ctx context.Context) {
	d.show(ctx, `kubectl apply -f - <<'EOF' &&
{apiVersion: foo.example.com/v1, kind: Sample, metadata: {name: mysample, namespace: ns}, spec: {foo: {bar: v2}}}
EOF
kubectl create role template -n ns --verb=get,list,watch --resource=samples.foo.example.com --resource-name=mysample &&
kubectl create rolebinding template -n ns --role=template --serviceaccount=penstock-system:penstock-templates`)
	template := "quay.io/sample/catalog:{group:foo.example.com,version:v1,kind:Sample,name:mysample,namespace:ns,jsonpath:{.spec.foo.bar}}"
	d.followed(ctx, "sample-catalog", template, "quay.io/sample/catalog:v1", "quay.io/sample/catalog:v2", "it follows a field of an object that its author may read, and that an administrator has released")
	d.show(ctx, fmt.Sprintf(`kubectl patch samples.foo.example.com mysample -n ns --type=merge -p '{"spec":{"foo":{"bar":"v3"}}}' &&
kubectl wait -n olm catalogsource/sample-catalog --for=jsonpath='{.spec.image}'=quay.io/sample/catalog:v3 --timeout=%s`, patience))
	d.unshown(ctx, "kubectl delete -n olm catalogsource --all")
}
