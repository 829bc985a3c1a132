//go:build integration

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/source/directory"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// manifestsPage has a row for each shape of manifests, with its outcomes.
const manifestsPage = "../../docs/reference/manifests.md"

// shape is a kind of manifest that users may write, and the path that it is sent to.
type shape struct {
	// path is that of the collection in the Kubernetes API.
	path, text string
}

func inPod(spec string) shape {
	return shape{"/api/v1/namespaces/default/pods", "apiVersion: v1\nkind: Pod\nmetadata: {name: shape, namespace: default}\nspec:\n" + indented(spec)}
}

func inContainer(text string) shape {
	return inPod("containers:\n- name: main\n  image: example.com/x\n" + indented(text))
}

func inConfigMap(text string) shape {
	return shape{"/api/v1/namespaces/default/configmaps", "apiVersion: v1\nkind: ConfigMap\n" + text}
}

func inShape(spec string) shape {
	return shape{"/apis/shapes.example.com/v1/namespaces/default/shapes", "apiVersion: shapes.example.com/v1\nkind: Shape\nmetadata: {name: shape, namespace: default}\nspec: " + spec + "\n"}
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

// shapesDefinition defines the kinds of the shapes in the cluster.
const shapesDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shapes.shapes.example.com}
spec:
  group: shapes.example.com
  scope: Namespaced
  names: {kind: Shape, plural: shapes}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string}}}}
              plain: {type: array, items: {type: string}}
              number: {type: integer}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: posts.shapes.example.com}
spec:
  group: shapes.example.com
  scope: Namespaced
  names: {kind: Post, plural: posts}
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {a: {type: string}}}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lanterns.shapes.example.com}
spec:
  group: shapes.example.com
  scope: Namespaced
  names: {kind: Lantern, plural: lanterns}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, required: [status], properties: {status: {type: object, properties: {a: {type: string}}}}}}}
`

// manifestShapes returns the shapes by the first column of the page.
func manifestShapes() map[string]shape {
	env := func(list string) shape { return inContainer("env: " + list) }
	service := func(ports string) shape {
		return shape{"/api/v1/namespaces/default/services", "apiVersion: v1\nkind: Service\nmetadata: {name: shape, namespace: default}\nspec: {ports: " + ports + "}\n"}
	}
	mounts := func(list string) shape {
		return inPod("volumes: [{name: a, emptyDir: {}}]\ncontainers: [{name: main, image: x, volumeMounts: " + list + "}]\n")
	}
	return map[string]shape{
		"environment variable twice, other values":                    env("[{name: A, value: one}, {name: B, value: x}, {name: A, value: two}]"),
		"environment variable twice, equal":                           env("[{name: A, value: one}, {name: A, value: one}]"),
		"environment variable twice, and read in between":             env("[{name: A, value: one}, {name: B, value: $(A)}, {name: A, value: two}]"),
		"environment variable twice, the last from optional":          env("[{name: A, value: one}, {name: A, valueFrom: {configMapKeyRef: {name: a, key: b, optional: true}}}]"),
		"container port twice, equal":                                 inContainer("ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]"),
		"container port twice, other names":                           inContainer("ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]"),
		"container port as TCP and UDP":                               inContainer("ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]"),
		"port of a Service twice":                                     service("[{name: a, port: 80}, {name: b, port: 80}]"),
		"port of a Service as TCP and UDP":                            service("[{name: a, port: 80}, {name: b, port: 80, protocol: UDP}]"),
		"volume twice":                                                inPod("volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]\ncontainers: [{name: main, image: x}]"),
		"mount path twice":                                            mounts("[{name: a, mountPath: /a}, {name: a, mountPath: /a}]"),
		"container name twice":                                        inPod("containers: [{name: main, image: x}, {name: main, image: x}]"),
		"image pull secret twice":                                     inPod("imagePullSecrets: [{name: a}, {name: a}]\ncontainers: [{name: main, image: x}]"),
		"image pull secret of a ServiceAccount twice":                 {"/api/v1/namespaces/default/serviceaccounts", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: shape, namespace: default}\nimagePullSecrets: [{name: a}, {name: a}]\n"},
		"secret of a ServiceAccount twice":                            {"/api/v1/namespaces/default/serviceaccounts", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: shape, namespace: default}\nsecrets: [{name: a}, {name: a}]\n"},
		"host alias twice":                                            inPod("hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}]\ncontainers: [{name: main, image: x}]"),
		"toleration twice":                                            inPod("tolerations: [{key: a, operator: Exists}, {key: a, operator: Exists}]\ncontainers: [{name: main, image: x}]"),
		"topology spread constraint twice":                            inPod("topologySpreadConstraints: [{topologyKey: a, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}, {topologyKey: a, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}]\ncontainers: [{name: main, image: x}]"),
		"rule of a ClusterRole twice":                                 {"/apis/rbac.authorization.k8s.io/v1/clusterroles", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: shape}\nrules: [{apiGroups: [\"\"], resources: [pods, pods], verbs: [get, get]}, {apiGroups: [\"\"], resources: [pods, pods], verbs: [get, get]}]\n"},
		"webhook name twice":                                          {"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: shape}\nwebhooks:\n- &w {name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: \"https://example.com/x\"}}\n- *w\n"},
		"finalizers":                                                  inConfigMap("metadata: {name: shape, namespace: default, finalizers: [example.com/a, example.com/a]}\n"),
		"unknown field of a kind of Kubernetes":                       inContainer("imagePullPolice: Always"),
		"field with another letter case":                              inContainer("imagepullpolicy: Always"),
		"number where text is meant":                                  env("[{name: A, value: 1}]"),
		"text where a number is meant":                                inContainer("ports: [{containerPort: \"80\"}]"),
		"port as number or name":                                      service("[{name: a, port: 80, targetPort: http}, {name: b, port: 81, targetPort: 8081}]"),
		"boolean in data":                                             inConfigMap("metadata: {name: shape, namespace: default}\ndata: {a: true}\n"),
		"fraction where a whole number is meant":                      inPod("terminationGracePeriodSeconds: 1.5\ncontainers: [{name: main, image: x}]"),
		"quantity as a number":                                        inContainer("resources: {limits: {cpu: 1, memory: 1000000}}"),
		"quantity that is none":                                       inContainer("resources: {limits: {cpu: many}}"),
		"Secret with data that is not base64":                         {"/api/v1/namespaces/default/secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: shape, namespace: default}\ndata: {a: hunter2 hunter2}\n"},
		"creationTimestamp: null":                                     inConfigMap("metadata: {name: shape, namespace: default, creationTimestamp: null}\n"),
		"creationTimestamp: null in a template":                       {"/apis/apps/v1/namespaces/default/deployments", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shape, namespace: default}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {creationTimestamp: null, labels: {a: b}}, spec: {containers: [{name: main, image: x}]}}}\n"},
		"creationTimestamp with a time":                               inConfigMap("metadata: {name: shape, namespace: default, creationTimestamp: \"2020-01-01T00:00:00Z\"}\n"),
		"resourceVersion and uid":                                     inConfigMap("metadata: {name: shape, namespace: default, uid: 11111111-1111-1111-1111-111111111111, resourceVersion: \"5\"}\n"),
		"managedFields":                                               inConfigMap("metadata: {name: shape, namespace: default, managedFields: [{manager: a, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {}}]}\n"),
		"ownerReferences":                                             inConfigMap("metadata: {name: shape, namespace: default, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: 11111111-1111-1111-1111-111111111111}]}\n"),
		"status filled in":                                            inPod("containers: [{name: main, image: x}]\nstatus: {phase: Running}").withStatus(),
		"empty list":                                                  inContainer("env: []\nports: []"),
		"null as a label":                                             inConfigMap("metadata: {name: shape, namespace: default, labels: {a: null}, annotations: {b: ~}}\n"),
		"null where a list is meant":                                  inContainer("env: null\nports: ~"),
		"null where an object is meant":                               inContainer("resources: null\nsecurityContext: ~"),
		"null where text or a number is meant":                        inPod("terminationGracePeriodSeconds: null\nnodeName: ~\ncontainers: [{name: main, image: x}]"),
		"null as an item of a list":                                   inContainer("args: [a, null]"),
		"null as an item of a list with keys":                         env("[null]"),
		"object where a list is meant":                                env("{A: one}"),
		"field of a definition in the cluster: unknown":               inShape("{nonsense: 1}"),
		"field of a definition in the cluster: set with repeats":      inShape("{set: [a, b, a]}"),
		"field of a definition in the cluster: key twice":             inShape("{map: [{name: a, value: one}, {name: a, value: two}]}"),
		"field of a definition in the cluster: plain list, repeats":   inShape("{plain: [a, a]}"),
		"field of a definition in the cluster: another type":          inShape("{number: \"1\"}"),
		"field of a definition in the cluster: anything is allowed":   inShape("{open: {x: [1, a, {}], z: null}}"),
		"custom resource with status that its kind does not declare":  inShape("{number: 1}\nstatus: {a: b}"),
		"custom resource with status, whose kind has the subresource": {"/apis/shapes.example.com/v1/namespaces/default/posts", "apiVersion: shapes.example.com/v1\nkind: Post\nmetadata: {name: shape, namespace: default}\nstatus: {a: b}\n"},
		"custom resource with status, whose kind has no subresource":  {"/apis/shapes.example.com/v1/namespaces/default/lanterns", "apiVersion: shapes.example.com/v1\nkind: Lantern\nmetadata: {name: shape, namespace: default}\nstatus: {a: b}\n"},
	}
}

// withStatus moves status out of spec, where inPod puts it.
func (s shape) withStatus() shape {
	s.text = strings.Replace(s.text, "  status:", "status:", 1)
	return s
}

// manifests: the page has the right outcomes of each shape, in the cluster and in Penstock.
func (d door) manifests() {
	d.MustKubectlInput(shapesDefinition, "create", "-f", "-")
	d.MustKubectl("wait", "--for=condition=Established", "crd/shapes.shapes.example.com", "crd/posts.shapes.example.com", "crd/lanterns.shapes.example.com", poll.TimeoutFlag)
	client, err := kubernetes.NewForConfig(d.Config())
	if err != nil {
		d.t.Fatal(err)
	}
	rows := manifestRows(d.t)
	all := manifestShapes()
	for name := range all {
		if rows[name] == nil {
			d.t.Errorf("%s has no row for %q", manifestsPage, name)
		}
	}
	for name, row := range rows {
		s, found := all[name]
		if !found {
			d.t.Errorf("%s has a row for %q, which the test does not try", manifestsPage, name)
			continue
		}
		d.t.Run(name, func(t *testing.T) {
			got := tryShape(t, client.CoreV1().RESTClient(), s)
			if !slices.Equal(got.cells(), row) {
				t.Errorf("the page says %s, the outcome is\n| %s | %s |\n%s", strings.Join(row, ", "), name, strings.Join(got.cells(), ", "), got.said)
			}
		})
	}
}

// outcome is the result of each operation on a shape: accepted, mended, warned or refused.
type outcome struct{ create, apply, render, revision, said string }

func (o outcome) cells() []string { return []string{o.create, o.apply, o.render, o.revision} }

func tryShape(t *testing.T, client rest.Interface, s shape) (o outcome) {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(s.text))
	if err != nil {
		t.Fatal(err)
	}
	said := func(err error) string {
		status := apierrors.APIStatus(nil)
		if err != nil {
			o.said += err.Error() + "\n"
			if s, ok := err.(apierrors.APIStatus); ok {
				status = s
			}
		}
		switch {
		case err == nil:
			return "taken"
		case status == nil:
			t.Fatal(err)
		case strings.Contains(err.Error(), "hunter2"):
			t.Errorf("the answer has a Secret's content: %v", err)
		}
		return "refused"
	}
	ctx := context.Background()
	o.create = said(client.Post().AbsPath(s.path).Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error())
	o.apply = said(client.Patch(types.ApplyPatchType).AbsPath(s.path+"/shape").Param("dryRun", "All").Param("fieldManager", "shape").Param("force", "true").Body(body).Do(ctx).Error())

	o.render = "taken"
	phases, err := directory.RenderStream(ctx, strings.NewReader(s.text), "shape.yaml", directory.Options{Warn: func(one directory.Error) {
		o.said += "warning: " + one.Error() + "\n"
		o.render = "mended"
		if strings.Contains(one.Message, "a cluster that does not know it") {
			o.render = "warned"
		}
	}})
	if err != nil {
		o.said += err.Error() + "\n"
		o.render = "refused"
	}
	o.revision = said(postRevision(ctx, client, body))
	if o.render == "mended" {
		if err := client.Patch(types.ApplyPatchType).AbsPath(s.path+"/shape").Param("dryRun", "All").Param("fieldManager", "shape").Param("force", "true").
			Body(phases[0].Objects[0].JSON).Do(ctx).Error(); err != nil {
			t.Errorf("the rendered manifest is refused: %v", err)
		}
	}
	return o
}

func postRevision(ctx context.Context, client rest.Interface, body []byte) error {
	revision, err := json.Marshal(map[string]any{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision", "metadata": map[string]any{"name": "shape-1"},
		"spec": map[string]any{"revision": 1, "phases": []any{map[string]any{"name": "one", "objects": []any{map[string]any{"object": json.RawMessage(body)}}}}},
	})
	if err != nil {
		return err
	}
	return client.Post().AbsPath("/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions").Param("dryRun", "All").
		SetHeader("Content-Type", "application/json").Body(revision).Do(ctx).Error()
}

// manifestRows returns the rows of the page's tables, by the shape of the manifest. A row has the
// outcomes of create, apply, render and revision. If all four are equal, the page has the outcome
// only once.
func manifestRows(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(manifestsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		outcomes := strings.Split(cells[1], ", ")
		if len(outcomes) == 1 {
			outcomes = slices.Repeat(outcomes, 4)
		}
		if outcomes[0] == "taken" || outcomes[0] == "refused" {
			rows[cells[0]] = outcomes
		}
	}
	if len(rows) == 0 {
		t.Error(fmt.Errorf("%s has no rows", manifestsPage))
	}
	return rows
}
