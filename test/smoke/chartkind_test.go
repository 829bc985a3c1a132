//go:build integration

package smoke_test

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/test/framework/packages"
)

// chartKind: a chart installs each custom resource of a kind, with the rights of a ServiceAccount.
func chartKind(s scenario) {
	chart := packages.PushFiles(s.t, s.images, "charts/lantern", map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: lantern\nversion: 1.0.0\n",
		"templates/lamp.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {oil: {{ .Values.oil | quote }}}\n",
	})
	s.Create(strings.NewReplacer("NAMESPACE", s.name, "CHART", chart).Replace(lanterns))
	s.Condition("chartkind/lanterns", "Accepted", "True")

	s.Create("{apiVersion: example.com/v1, kind: Lantern, metadata: {name: north}, spec: {oil: whale}}")
	s.Condition("lantern/north", "Deployed", "True", "InstallSuccessful")
	s.Condition("lantern/north", "Ready", "True")
	s.succeeds("cer/lantern-north-1")
	s.Is("configmap/north", ".data.oil", "whale")
	s.Is("cer/lantern-north-1", ".status.requestedBy.username", fmt.Sprintf("system:serviceaccount:%s:keeper", s.name))

	s.Patch("lantern/north", `{"spec":{"oil":"olive"}}`)
	s.Becomes("configmap/north", ".data.oil", "olive")
	s.Condition("lantern/north", "Deployed", "True", "UpgradeSuccessful")

	s.Delete("lantern/north")
	s.Gone("lantern/north")
	s.Gone("cer/lantern-north-2")
	s.Absent("configmap/north")
}

// lanterns defines the kind, its ChartKind, and the ServiceAccount with the rights that the chart
// needs.
const lanterns = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lanterns.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lanterns, singular: lantern, kind: Lantern}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {oil: {type: string}}}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items: {type: object, x-kubernetes-preserve-unknown-fields: true, required: [type], properties: {type: {type: string}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: keeper, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: penstock, namespace: NAMESPACE}
rules:
- {apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [keeper], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: penstock, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: penstock}
subjects: [{kind: ServiceAccount, name: penstock, namespace: penstock-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lantern-keeper}
rules:
- {apiGroups: [example.com], resources: [lanterns], verbs: [get, list, watch, patch]}
- {apiGroups: [example.com], resources: [lanterns/status], verbs: [patch]}
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create, delete]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lantern-keeper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lantern-keeper}
subjects: [{kind: ServiceAccount, name: keeper, namespace: NAMESPACE}]
---
apiVersion: charts.penstock.dev/v1alpha1
kind: ChartKind
metadata: {name: lanterns}
spec:
  resource: {group: example.com, version: v1, kind: Lantern}
  chart: {ref: "CHART"}
  serviceAccount: {namespace: NAMESPACE, name: keeper}
  extension: "'lantern-' + object.metadata.name"
  values:
  - {to: oil, from: spec.oil}
`
