package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

const (
	csvFile     = "manifests/beam.clusterserviceversion.yaml"
	crdFile     = "manifests/lamps.yaml"
	annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: beam\n"
)

// beam is a small bundle with all parts that the tests change.
const beam = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: beam.v1.0.0
  annotations: {capabilities: Full}
spec:
  version: 1.0.0
  installModes:
  - {type: AllNamespaces, supported: true}
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  customresourcedefinitions:
    owned:
    - {name: lamps.example.com, version: v1, kind: Lamp}
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: beam
        rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
      clusterPermissions:
      - rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
      deployments:
      - name: beam
        spec:
          selector: {matchLabels: {app: beam}}
          template:
            metadata:
              labels: {app: beam}
              annotations: {capabilities: Mine}
            spec:
              containers:
              - name: main
                image: example.com/beam:v1
                env: [{name: A, value: "1"}]
                volumeMounts: [{name: data, mountPath: /data}, {name: data, mountPath: /more, subPath: more}]
              volumes: [{name: data, emptyDir: {}}]
`

const lamps = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Lamp, plural: lamps}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

const webhooks = `  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: lamps.example.com-
    deploymentName: beam
    targetPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [lamps]}]
`

const conversion = `  - type: ConversionWebhook
    generateName: convert.example.com
    deploymentName: beam
    admissionReviewVersions: [v1]
    sideEffects: None
    conversionCRDs: [lamps.example.com]
`

// bundle returns the bundle beam. edits are pairs of an old and a new text in its
// ClusterServiceVersion.
func bundle(t *testing.T, edits ...string) fstest.MapFS {
	t.Helper()
	text := beam
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("%q is not in the bundle", edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return fstest.MapFS{
		csvFile:         {Data: []byte(text)},
		crdFile:         {Data: []byte(lamps)},
		annotationsFile: {Data: []byte(annotations)},
	}
}

func with(files fstest.MapFS, name, text string) fstest.MapFS {
	files[name] = &fstest.MapFile{Data: []byte(text)}
	return files
}

func render(t *testing.T, files fs.FS, options Options) (source.Rendered, error) {
	t.Helper()
	if options.InstallNamespace == "" {
		options.InstallNamespace = "light"
	}
	return Renderer{options}.Render(t.Context(), files)
}

func find(t *testing.T, rendered source.Rendered, kind, name string) map[string]any {
	t.Helper()
	var ids []string
	for _, phase := range rendered.Phases {
		for _, object := range phase.Objects {
			if object.Kind == kind && (object.Name == name || name == "") {
				content, err := raw(object)
				if err != nil {
					t.Fatal(err)
				}
				return content
			}
			ids = append(ids, object.ID.String())
		}
	}
	t.Fatalf("no %s %s among %s", kind, name, strings.Join(ids, ", "))
	return nil
}

func TestRefused(t *testing.T) {
	only := []string{"  - {type: OwnNamespace, supported: true}\n  - {type: SingleNamespace, supported: true}\n", ""}
	cases := map[string]struct {
		reason  string
		files   fstest.MapFS
		options Options
		want    []string
	}{
		"NoCSV": {"a bundle has one", with(bundle(t), csvFile, lamps), Options{}, []string{"is already at"}},
		"OnlyDefinitions": {"a bundle has one", with(bundle(t), csvFile, "kind: Service\napiVersion: v1\nmetadata: {name: a}\n"), Options{},
			[]string{"manifests: no ClusterServiceVersion found"}},
		"TwoCSVs": {"which of them counts would be a question of file names",
			with(bundle(t), "manifests/z.yaml", strings.Replace(beam, "beam.v1.0.0", "beam.v2.0.0", 1)), Options{},
			[]string{"manifests/z.yaml:1", "beam.v1.0.0 is already at " + csvFile + ":1"}},
		"Folder":        {"manifests are in one folder", with(bundle(t), "manifests/more/a.yaml", lamps), Options{}, []string{"manifests/more is a folder"}},
		"NoManifests":   {"it says what was looked for", fstest.MapFS{annotationsFile: {Data: []byte(annotations)}}, Options{}, []string{"manifests is missing"}},
		"NoAnnotations": {"it says what was looked for", fstest.MapFS{csvFile: {Data: []byte(beam)}}, Options{}, []string{annotationsFile + " is missing"}},
		"Format": {"other formats are not read", with(bundle(t), annotationsFile, annotations+"  operators.operatorframework.io.bundle.mediatype.v1: helm\n"), Options{},
			[]string{`"helm", want registry+v1`}},
		"Certificates": {"another one would do nothing", bundle(t), Options{Certificates: "own"}, []string{`certificates "own": want one of cert-manager, service-ca, operator`}},
		"Namespace":    {"names are checked first", bundle(t), Options{InstallNamespace: "A"}, []string{`install namespace "A"`}},

		"DeploymentTwice": {"deployment-name-unique", bundle(t, "      deployments:\n", "      deployments:\n      - {name: beam}\n"), Options{},
			[]string{csvFile + ":25: ", `spec.install.spec.deployments[1].name: Deployment "beam" is in the list already`}},
		"DeploymentName":  {"deployment-name", bundle(t, "- name: beam", "- name: Beam"), Options{}, []string{csvFile + ":24: ", `deployments[0].name: is "Beam"`}},
		"DefinitionTwice": {"definition-unique", with(bundle(t), "manifests/z.yaml", lamps), Options{}, []string{"manifests/z.yaml:1", "is already at"}},
		"OldDefinition": {"v1beta1 is gone", with(bundle(t), crdFile, strings.Replace(lamps, "io/v1", "io/v1beta1", 1)), Options{},
			[]string{crdFile + ":1", "apiVersion: is apiextensions.k8s.io/v1beta1"}},
		"OwnedMissing": {"owned-definition-exists", bundle(t, "name: lamps.example.com", "name: bulbs.example.com"), Options{},
			[]string{csvFile + ":14: ", `owned[0].name: CustomResourceDefinition "bulbs.example.com" is not in the bundle`}},
		"PackageName": {"package-name", with(bundle(t), annotationsFile, "annotations: {}\n"), Options{}, []string{annotationsFile + ": annotation", "names the package"}},
		"Kind": {"supported-kind", with(bundle(t), "manifests/z.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"), Options{},
			[]string{"manifests/z.yaml:2: Job j: kind: Job.batch", "allowed are", "PriorityClass.scheduling.k8s.io"}},
		"APIService": {"it would need a CA that nobody keeps", bundle(t, "  install:\n", "  apiservicedefinitions: {owned: [{group: g.example.com, version: v1, kind: K}]}\n  install:\n"), Options{},
			[]string{csvFile + ":15: ", "apiservicedefinitions.owned[0]: APIService v1.g.example.com"}},
		"MultiNamespace": {"it cannot be installed", bundle(t, only[0], "", "AllNamespaces", "MultiNamespace"), Options{}, []string{csvFile + ":8: ", "spec.installModes: none of"}},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { wantRefusal(t, tc.reason, tc.files, tc.options, tc.want) })
	}
}

func TestRefusedWebhooks(t *testing.T) {
	all := []string{"  - {type: OwnNamespace, supported: true}\n  - {type: SingleNamespace, supported: true}\n", ""}
	hooks := func(edits ...string) fstest.MapFS {
		return bundle(t, append(append([]string{"  install:\n", webhooks + conversion + "  install:\n"}, all...), edits...)...)
	}
	cases := map[string]struct {
		reason       string
		files        fstest.MapFS
		certificates CertificateProvider
		want         []string
	}{
		"NoProvider":     {"somebody makes certificates", hooks(), "", []string{"want one of cert-manager, service-ca, operator"}},
		"InstallModes":   {"conversion-install-mode", bundle(t, "  install:\n", webhooks+conversion+"  install:\n"), CertManager, []string{"webhookdefinitions[1].type", "supports the install mode AllNamespaces and no other"}},
		"Deployment":     {"webhook-deployment", hooks("deploymentName: beam", "deploymentName: ray"), CertManager, []string{`webhookdefinitions[0].deploymentName: Deployment "ray"`}},
		"Twice":          {"webhook-name-unique", hooks("  install:\n", strings.TrimPrefix(webhooks, "  webhookdefinitions:\n")+"  install:\n"), CertManager, []string{`webhookdefinitions[2].generateName`, "already"}},
		"Name":           {"webhook-name", hooks("lamps.example.com-", "lamps.example.com--"), CertManager, []string{`webhookdefinitions[0].generateName: is "lamps.example.com--"`}},
		"Type":           {"which types there are is said", hooks("ValidatingAdmissionWebhook", "Validating"), CertManager, []string{`type: is "Validating", want`}},
		"ConvertedTwice": {"conversion-unique", hooks("  install:\n", strings.Replace(conversion, "convert.", "other.", 1)+"  install:\n"), CertManager, []string{`webhookdefinitions[2].conversionCRDs[0]`, `converted by "convert.example.com" already`}},
		"Foreign":        {"conversion-owned", hooks("conversionCRDs: [lamps", "conversionCRDs: [bulbs"), CertManager, []string{`"bulbs.example.com" is not in spec.customresourcedefinitions.owned`}},
		"AllGroups":      {"webhook-rules", hooks("rules: [{apiGroups: [example.com]", "rules: [{apiGroups: ['*']"), CertManager, []string{"webhookdefinitions[0].rules[0].apiGroups: * is not allowed"}},
		"OLM":            {"webhook-rules", hooks("rules: [{apiGroups: [example.com]", "rules: [{apiGroups: [olm.operatorframework.io]"), CertManager, []string{"olm.operatorframework.io is not allowed"}},
		"Webhooks": {"webhook-rules", hooks("rules: [{apiGroups: [example.com]", "rules: [{apiGroups: [admissionregistration.k8s.io]", "resources: [lamps]", "resources: [mutatingwebhookconfigurations]"), CertManager,
			[]string{"mutatingwebhookconfigurations of admissionregistration.k8s.io is not allowed"}},
		"UnknownFields": {"the API server would not convert", with(hooks(), crdFile, lamps+"  preserveUnknownFields: true\n"), CertManager, []string{crdFile + ":10: ", "preserveUnknownFields is true, must be false"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, tc.reason, tc.files, Options{Certificates: tc.certificates}, tc.want)
		})
	}
}

func wantRefusal(t *testing.T, reason string, files fs.FS, options Options, want []string) {
	t.Helper()
	rendered, err := render(t, files, options)
	if err == nil {
		t.Fatalf("%s: got no error, but %d objects", reason, source.Count(rendered.Phases))
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q is missing in: %v", reason, part, err)
		}
	}
}

// TestRequirementPlaces: a requirement names the file that states it.
func TestRequirementPlaces(t *testing.T) {
	annotated := func(properties string) fstest.MapFS {
		return bundle(t, "annotations: {capabilities: Full}", "annotations:\n    olm.properties: '"+properties+"'")
	}
	for name, tc := range map[string]struct {
		reason string
		files  fstest.MapFS
		want   string
	}{
		"Annotation": {"the annotation says so", annotated(`[{"type": "olm.gvk.required", "value": {"group": "g.example.com", "version": "v1", "kind": "Bulb"}}]`),
			csvFile + ":6: olm.gvk.required: requires kind Bulb of g.example.com/v1"},
		"AnnotationWrong": {"the annotation is wrong", annotated(`[{"type": "olm.gvk.required", "value": {}}]`), csvFile + ":6: olm.gvk.required: kind is missing"},
		"Constraint":      {"it constrains nothing", with(bundle(t), propertiesFile, "properties: [{type: olm.constraint}]\n"), propertiesFile + ": olm.constraint: value is missing"},
	} {
		if _, err := render(t, tc.files, Options{}); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %s: got %v, want %s", name, tc.reason, err, tc.want)
		}
	}
}

func TestRequirements(t *testing.T) {
	files := with(bundle(t, "    owned:\n", "    required: [{name: certs.other.example.com, version: v1, kind: Cert}, {name: lamps.example.com, version: v1, kind: Lamp}]\n    owned:\n"),
		dependenciesFile, "dependencies:\n- {type: olm.package, value: {packageName: wires, version: '>=1.0.0'}}\n")
	files = with(files, propertiesFile, "properties:\n- {type: olm.gvk.required, value: {group: g.example.com, version: v1, kind: Bulb}}\n- {type: olm.package.required, value: {packageName: wires, versionRange: '>=1.0.0'}}\n")
	_, err := render(t, files, Options{Providers: func(one source.Requirement) []string {
		if one.Package == "wires" {
			return []string{"wires"}
		}
		return nil
	}})
	var all *directory.Errors
	if !errors.As(err, &all) {
		t.Fatalf("got %v, want all that is required", err)
	}
	want := "metadata/dependencies.yaml: olm.package: requires package wires >=1.0.0, which is in package wires; " + installFirst + "--accept-requirements\n" +
		"metadata/properties.yaml: olm.gvk.required: requires kind Bulb of g.example.com/v1, which no package of the catalogs has; " + installFirst + "--accept-requirements\n" +
		csvFile + ":13: spec.customresourcedefinitions.required[0]: requires kind Cert of other.example.com/v1, which no package of the catalogs has; " + installFirst + "--accept-requirements"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	rendered, err := render(t, files, Options{AcceptRequirements: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(rendered.Warnings) != 3 || !strings.Contains(rendered.Warnings[0].Message, "requires package wires") {
		t.Errorf("warnings are %q, want one for each requirement", rendered.Warnings)
	}
	pod := child(child(child(find(t, rendered, "Deployment", "beam"), "spec"), "template"), "metadata")
	if got := child(pod, "annotations")[propertiesAnnotation]; got != `[{"type":"olm.gvk.required","value":{"group":"g.example.com","kind":"Bulb","version":"v1"}},{"type":"olm.package.required","value":{"packageName":"wires","versionRange":"\u003e=1.0.0"}}]` {
		t.Errorf("properties in the annotations of pods: %v", got)
	}
}

func TestConfigured(t *testing.T) {
	configured := `{"watchNamespace":"lamps","deploymentConfig":{
		"env":[{"name":"A","value":"2"},{"name":"B","value":"3"}],
		"volumeMounts":[{"name":"data","mountPath":"/moved"},{"name":"data","mountPath":"/twice","subPath":"t"}],
		"annotations":{"capabilities":"Theirs","new":"yes"}}}`
	rendered, err := render(t, bundle(t, "  install:\n", webhooks+"  install:\n"), Options{Config: []byte(configured), Certificates: ServiceCA})
	if err != nil {
		t.Fatal(err)
	}
	if got := child(find(t, rendered, "Role", ""), "metadata")["namespace"]; got != "lamps" {
		t.Errorf("the Role is in %v, want the watched namespace", got)
	}
	if got := child(find(t, rendered, "ClusterRole", ""), "metadata")["name"].(string); !strings.HasPrefix(got, "beam.v1.0.0-defaul") {
		t.Errorf("the ClusterRole without a ServiceAccount is %s", got)
	}
	template := child(child(find(t, rendered, "Deployment", "beam"), "spec"), "template")
	wantAnnotations := map[string]any{"capabilities": "Mine", "new": "yes", "olm.targetNamespaces": "lamps", "olm.operatorNamespace": "light"}
	if diff := cmp.Diff(wantAnnotations, child(child(template, "metadata"), "annotations")); diff != "" {
		t.Errorf("annotations of pods: -want, +got:\n%s", diff)
	}
	container := containers(child(template, "spec"))[0]
	if diff := cmp.Diff([]any{map[string]any{"name": "A", "value": "2"}, map[string]any{"name": "B", "value": "3"}}, container["env"]); diff != "" {
		t.Errorf("env: -want, +got:\n%s", diff)
	}
	var mounts []string
	for _, mount := range objectsOf(container["volumeMounts"]) {
		mounts = append(mounts, mount["mountPath"].(string))
	}
	if diff := cmp.Diff([]string{"/tmp/k8s-webhook-server/serving-certs", "/apiserver.local.config/certificates", "/moved", "/twice"}, mounts); diff != "" {
		t.Errorf("mounts: -want, +got:\n%s", diff)
	}
	hook := find(t, rendered, "ValidatingWebhookConfiguration", "lamps.example.com")
	if got := child(child(hook, "metadata"), "annotations")["service.beta.openshift.io/inject-cabundle"]; got != "true" {
		t.Errorf("annotation of the webhook is %v", got)
	}
	first := hook["webhooks"].([]any)[0].(map[string]any)
	if got := child(first, "namespaceSelector")["matchExpressions"]; got == nil {
		t.Errorf("the webhook is for all namespaces: %v", first)
	}
	if got := child(child(first, "clientConfig"), "service")["port"]; got != int64(443) {
		t.Errorf("the webhook is called at port %v, want that of its Service", got)
	}
	if got := child(child(find(t, rendered, "Service", "beam-service"), "metadata"), "annotations")["service.beta.openshift.io/serving-cert-secret-name"]; got != "beam-service-cert" {
		t.Errorf("annotation of the Service is %v", got)
	}
}

// TestServerSideApply: a manifest that server-side apply would refuse is repaired, or refused with
// the line of the ClusterServiceVersion.
func TestServerSideApply(t *testing.T) {
	rendered, err := render(t, bundle(t, `env: [{name: A, value: "1"}]`, `env: [{name: A, value: "1"}, {name: A, value: "2"}]`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(rendered.Warnings) != 1 || !strings.HasPrefix(rendered.Warnings[0].String(), csvFile+":35: Deployment.apps light/beam: spec.template.spec.containers") {
		t.Errorf("warnings are %q, want one about the line of the variable", rendered.Warnings)
	}
	wantRefusal(t, "the line is that of the field", bundle(t, "- name: main", "- name: main\n                ports: all"), Options{}, []string{csvFile + ":34: Deployment.apps light/beam: spec.template.spec.containers"})
}

// TestKubernetesVersion: for a cluster that is new enough there is no warning.
func TestKubernetesVersion(t *testing.T) {
	for cluster, want := range map[string]string{
		"":                   "the operator needs Kubernetes 1.30.0 or later",
		"v1.30.0":            "",
		"v1.36.3-gke.123456": "",
		"v1.29.9":            "the operator needs Kubernetes 1.30.0 or later, and the cluster has v1.29.9",
	} {
		rendered, err := render(t, bundle(t, "  version: 1.0.0\n", "  version: 1.0.0\n  minKubeVersion: 1.30.0\n"), Options{KubeVersion: cluster})
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && len(rendered.Warnings) > 0 || want != "" && (len(rendered.Warnings) != 1 || !strings.HasSuffix(rendered.Warnings[0].Message, want)) {
			t.Errorf("%q: got %v, want %q", cluster, rendered.Warnings, want)
		}
	}
}

// TestOwnObjects: an object in the bundle replaces the generated object, such as a ServiceAccount
// or the webhooks' Service.
func TestOwnObjects(t *testing.T) {
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: beam, annotations: {a: b}}\nimagePullSecrets: [{name: pull}]\n"
	rendered, err := render(t, with(bundle(t), "manifests/account.yaml", account), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := find(t, rendered, "ServiceAccount", "beam"); len(list(got["imagePullSecrets"])) != 1 || child(child(got, "metadata"), "annotations")["a"] != "b" || len(rendered.Warnings) > 0 {
		t.Errorf("got %v, and warnings %v", got, rendered.Warnings)
	}
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: beam-service}\nspec: {selector: {own: label}, ports: [{port: 443, targetPort: 8443}]}\n"
	hooked := func() fstest.MapFS { return bundle(t, "  install:\n", webhooks+"  install:\n") }
	rendered, err = render(t, with(hooked(), "manifests/service.yaml", service), Options{Certificates: ServiceCA})
	if err != nil {
		t.Fatal(err)
	}
	got := find(t, rendered, "Service", "beam-service")
	if child(child(got, "spec"), "selector")["own"] != "label" || child(child(got, "metadata"), "annotations")["service.beta.openshift.io/serving-cert-secret-name"] != "beam-service-cert" {
		t.Errorf("got %v, want the bundle's Service with the annotation for its certificate", got)
	}
	wantWarning(t, rendered, "manifests/service.yaml:1: Service beam-service: the bundle's Service is kept, and none is made for the webhooks of Deployment beam")
	rendered, err = render(t, with(hooked(), "manifests/service.yaml", strings.Replace(service, "port: 443", "port: 80", 1)), Options{Certificates: CertManager})
	if err != nil {
		t.Fatal(err)
	}
	wantWarning(t, rendered, "manifests/service.yaml:1: Service beam-service: the bundle's Service is kept, and none is made for the webhooks of Deployment beam: it lacks their port 443, so the API server cannot call them")
}

func wantWarning(t *testing.T, rendered source.Rendered, want string) {
	t.Helper()
	if len(rendered.Warnings) != 1 || rendered.Warnings[0].String() != want {
		t.Errorf("got warnings %v, want %q", rendered.Warnings, want)
	}
}

// TestConversionOfNobody: a definition whose conversion Service does not exist causes a warning.
func TestConversionOfNobody(t *testing.T) {
	stale := lamps + "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: light, name: gone}}}}\n"
	rendered, err := render(t, with(bundle(t), crdFile, stale), Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantWarning(t, rendered, "manifests/lamps.yaml:10: CustomResourceDefinition lamps.example.com: spec.conversion.webhook.clientConfig.service is Service light/gone, which the bundle does not have: unless the cluster has it, custom resources of this definition can be neither read nor deleted")
	own := "apiVersion: v1\nkind: Service\nmetadata: {name: gone}\nspec: {ports: [{port: 443}]}\n"
	if rendered, err = render(t, with(with(bundle(t), crdFile, stale), "manifests/service.yaml", own), Options{}); err != nil || len(rendered.Warnings) > 0 {
		t.Errorf("with the Service: warnings %v, %v", rendered.Warnings, err)
	}
}

// TestFieldCases: bundles from user reports.
func TestFieldCases(t *testing.T) {
	cases := filepath.Join("..", "..", "..", "..", "shared", "data", "field-cases", "olm")
	if _, err := os.Stat(cases); err != nil {
		t.Skip("no field cases beside the repository")
	}
	for name, want := range map[string]struct {
		// accounts is the number of ServiceAccounts. warning is part of the only warning.
		accounts int
		warning  string
	}{
		"03-serviceaccount-twice/v1": {accounts: 1}, "03-serviceaccount-twice/label-only": {accounts: 1}, "03-serviceaccount-twice/same": {accounts: 1},
		"03-serviceaccount-twice/creationtimestamp-null": {accounts: 1}, "03-serviceaccount-twice/other-namespace": {accounts: 1}, "03-serviceaccount-twice/sa-only-in-deployment": {accounts: 1},
		"04-stale-conversion/v1": {}, "04-stale-conversion/v2": {warning: "which the bundle does not have"},
		"30-csv-other-apiversion/no-group": {warning: "apiVersion is v1alpha1, and is taken for operators.coreos.com/v1alpha1"}, "30-csv-other-apiversion/wrong-group": {warning: "apiVersion is "}, "30-csv-other-apiversion/core-looking": {warning: "apiVersion is "},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := Renderer{Options{InstallNamespace: "light", Certificates: CertManager}}.Render(t.Context(), os.DirFS(filepath.Join(cases, name)))
			if err != nil {
				t.Fatal(err)
			}
			accounts := 0
			for _, phase := range rendered.Phases {
				for _, object := range phase.Objects {
					if object.Kind == "ServiceAccount" {
						accounts++
					}
				}
			}
			if accounts != want.accounts {
				t.Errorf("got %d ServiceAccounts, want %d", accounts, want.accounts)
			}
			if want.warning == "" && len(rendered.Warnings) > 0 || want.warning != "" && (len(rendered.Warnings) != 1 || !strings.Contains(rendered.Warnings[0].Message, want.warning)) {
				t.Errorf("got warnings %v, want %q", rendered.Warnings, want.warning)
			}
		})
	}
}

// TestFieldCasesRender: all other reported bundles are rendered, because most of their defects show
// only in a cluster.
func TestFieldCasesRender(t *testing.T) {
	refused := map[string]string{
		"15-annotation-bool/v1": "certified", "22-ownnamespace-only/v1": "watchNamespace", "24-dependency/v1": "--accept-requirements", "24-dependency/gvk": "--accept-requirements",
	}
	bundles, err := filepath.Glob(filepath.Join(fieldCases, "*", "*", "manifests"))
	if err != nil || len(bundles) == 0 {
		t.Skipf("no field cases beside the repository: %v", err)
	}
	for _, manifests := range bundles {
		name, err := filepath.Rel(fieldCases, filepath.Dir(manifests))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			_, err := Renderer{Options{InstallNamespace: "home", Certificates: CertManager}}.Render(t.Context(), os.DirFS(filepath.Dir(manifests)))
			if want := refused[name]; (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
		})
	}
}

// TestExample renders the bundles of the lighthouse operator with every option.
func TestExample(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "artifacts", "examples", "lighthouse-bundles")
	for _, version := range []string{"v1.0.0", "v1.1.0", "v1.2.0"} {
		for _, config := range []string{"", `{"watchNamespace":"lighthouse-system"}`} {
			options := Options{InstallNamespace: "lighthouse-system", Certificates: CertManager, Config: []byte(config)}
			var encoded [2][]byte
			for i := range encoded {
				rendered, err := render(t, os.DirFS(filepath.Join(dir, version)), options)
				if err != nil {
					t.Fatal(err)
				}
				if rendered.Package != "lighthouse" || "v"+rendered.Version != version {
					t.Errorf("%s: package %q, version %q", version, rendered.Package, rendered.Version)
				}
				if diff := cmp.Diff([]source.Warning{{File: "manifests/lighthouse.clusterserviceversion.yaml", Line: 16,
					Message: "ClusterServiceVersion lighthouse." + version + ": spec.minKubeVersion: the operator needs Kubernetes 1.30.0 or later"}}, rendered.Warnings); diff != "" {
					t.Errorf("warnings: -want, +got:\n%s", diff)
				}
				if encoded[i], err = json.Marshal(rendered.Phases); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(encoded[0], encoded[1]) {
				t.Errorf("%s: rendered twice, it is not the same", version)
			}
		}
	}
}

// TestValidatorsAreDocumented: the table in docs/reference/bundles.md equals the table in the code.
func TestValidatorsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "bundles.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range validators() {
		if item := fmt.Sprintf("- `%s`: %s\n", one.name, one.rule); !strings.Contains(string(page), item) {
			t.Errorf("docs/reference/bundles.md has no item %s", item)
		}
	}
	if n := len(validators()); n != 13 {
		t.Errorf("%d validators, want the 13 of OLM v1", n)
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte(beam), []byte(annotations), []byte(`{"watchNamespace":"a"}`))
	f.Add([]byte(strings.Replace(beam, "  install:\n", webhooks+"  install:\n", 1)), []byte(annotations), []byte(`{"deploymentConfig":{"env":[{"name":"A"}],"affinity":{}}}`))
	f.Add([]byte(strings.Replace(beam, "containers:", "containers: [null, 1]\n              other:", 1)), []byte(`annotations: {a: [1]}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, csv, annotations, config []byte) {
		files := fstest.MapFS{csvFile: {Data: csv}, crdFile: {Data: []byte(lamps)}, annotationsFile: {Data: annotations}}
		rendered, err := Renderer{Options{InstallNamespace: "light", Certificates: CertManager, AcceptRequirements: true, Config: config}}.Render(t.Context(), files)
		if err != nil {
			return
		}
		for _, phase := range rendered.Phases {
			for _, object := range phase.Objects {
				if _, err := manifest.Parse(object.JSON); err != nil {
					t.Errorf("%s is not a manifest: %v", object.ID, err)
				}
			}
		}
	})
}
