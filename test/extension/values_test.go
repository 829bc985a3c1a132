//go:build integration

package extension_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Values: a chart takes values from a Secret and a ConfigMap that its author can get. The Secret's
// value is written only to Secrets. An edit of the values is an upgrade. If the right is missing,
// the installed version stays.
func valuesFrom(w shared) {
	ref := w.pushFiles("charts/"+w.name, map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: lamp\nversion: 1.0.0\n",
		"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: made}\nstringData: {password: {{ .Values.db.password | quote }}}\n",
		"templates/map.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {size: {{ .Values.size | quote }}{{ if .Values.show }}, url: \"db://me:{{ .Values.db.password }}@db\"{{ end }}}\n",
		"templates/fail.yaml":   "{{ if .Values.fail }}{{ fail (printf \"wrong: %s\" .Values.db.password) }}{{ end }}",
	})
	const secrets = "- {apiGroups: [\"\"], resources: [secrets], verbs: [create, patch, delete%s]}\n"
	const rest = mayWrite + mayInstall + "- {apiGroups: [\"\"], resources: [serviceaccounts], resourceNames: [installer], verbs: [impersonate]}\n"
	w.grant("installer", "ServiceAccount", mayInstall+fmt.Sprintf(secrets, ""))
	w.MustKubectl("-n", w.name, "create", "secret", "generic", "db", "--from-literal=password=correct-horse")
	w.MustKubectl("-n", w.name, "create", "configmap", "settings", "--from-literal=values.yaml=size: big")
	extend := func(inline string) string {
		return fmt.Sprintf(`{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %[1]s, annotations: {penstock.dev/values-from: "[{kind: ConfigMap, name: settings}, {kind: Secret, name: db, key: password, targetPath: db.password}]"}},
spec: {namespace: %[1]s, serviceAccount: {name: installer}, source: {sourceType: Chart, chart: {ref: %[2]q}}, config: {configType: Inline, inline: %[3]s}}}`, w.name, ref, inline)
	}
	alice := w.person("alice", rest+fmt.Sprintf(secrets, ""))
	if out := alice.KubectlInput(extend("{extra: none}"), "apply", "-f", "-"); out.ExitCode == 0 || !strings.Contains(out.Stderr, "cannot get secrets "+w.name+"/db") {
		w.t.Errorf("alice cannot read the Secret: %s", out)
	}
	w.grant(alice.name, "User", rest+fmt.Sprintf(secrets, ", get"))
	w.apply(alice, w.name, extend("{extra: none}"))
	w.awaitExtension(w.name, "it is installed", is("Ready=True/Succeeded"))
	made := func(what, want string) {
		w.t.Helper()
		w.await(corev1.SchemeGroupVersion.WithResource("secrets"), "made", what, func(object *unstructured.Unstructured) (bool, error) {
			if object == nil {
				return false, nil
			}
			value, _, err := unstructured.NestedString(object.Object, "data", "password")
			return value == want, err
		})
	}
	made("it has the value", "Y29ycmVjdC1ob3JzZQ==")
	if got := w.MustKubectl("-n", w.name, "get", "configmap", "made", "-o", "jsonpath={.data.size}"); got != "big" {
		w.t.Errorf("the size is %s", got)
	}

	w.apply(alice, w.name, extend("{show: true}"))
	w.awaitExtension(w.name, "a ConfigMap would have it", is("Ready=False/InvalidConfiguration: ConfigMap "+w.name+"/made: field data.url has the value of Secret db, key password, db.password"))
	w.apply(alice, w.name, extend("{fail: true}"))
	w.awaitExtension(w.name, "an error has it", is("Ready=False/UnsupportedContent: wrong: ***"))
	w.apply(alice, w.name, extend("{extra: none}"))
	w.awaitExtension(w.name, "it is as before", is("Ready=True/Succeeded"))

	w.MustKubectl("-n", w.name, "patch", "secret", "db", "--type=merge", "-p", `{"stringData":{"password":"battery-staple"}}`)
	made("the edit is rolled out", "YmF0dGVyeS1zdGFwbGU=")
	r := w.awaitRevision(w.name+"-2", "it was rolled out", succeeded)
	if who := r.Status.RequestedBy; who == nil || who.Username != "system:serviceaccount:"+w.name+":installer" {
		w.t.Errorf("the revision was made by %v", who)
	}
	w.grant(alice.name, "User", rest)
	w.MustKubectl("-n", w.name, "delete", "secret", "db")
	w.awaitExtension(w.name, "alice cannot read it any more", is("Ready=True/Succeeded: cannot get secrets "+w.name+"/db"))
	made("what is installed stays", "YmF0dGVyeS1zdGFwbGU=")
	for _, out := range []string{w.MustKubectl("get", "clusterextension", w.name, "-o", "yaml"), w.MustKubectl("get", "events", "-A", "-o", "yaml"), w.MustKubectl("get", "cer", "-o", "yaml")} {
		for _, value := range []string{"correct-horse", "battery-staple", "YmF0dGVyeS1zdGFwbGU="} {
			if strings.Contains(out, value) {
				w.t.Errorf("%s is shown: %s", value, out)
			}
		}
	}
	w.MustKubectl("delete", "clusterextension", w.name)
}
