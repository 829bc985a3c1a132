package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestApplied: fields that a controller sets are never applied, in any spelling. All other fields
// are unchanged.
func TestApplied(t *testing.T) {
	const role = `"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x"}`
	rbac := ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	secret := ID{Kind: "Secret"}
	webhooks := ID{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
	definition := ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiService := ID{Group: "apiregistration.k8s.io", Kind: "APIService"}
	const inject = `"metadata":{"annotations":{"cert-manager.io/inject-ca-from":"a/b"},"name":"x"}`
	// bundle only needs to be a PEM block here.
	const bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
	cases := map[string]struct {
		reason string
		id     ID
		raw    string
		want   string
	}{
		"stringData": {"it is folded, and wins over data", secret,
			`{"data":{"a":"eA==","b":"eQ=="},"stringData":{"a":"1","c":""}}`, `{"data":{"a":"MQ==","b":"eQ==","c":""}}`},
		"no data":          {"data is made", secret, `{"stringData":{"a":"1"}}`, `{"data":{"a":"MQ=="}}`},
		"empty stringData": {"it says nothing", secret, `{"stringData":{},"type":"Opaque"}`, `{"type":"Opaque"}`},
		"null stringData":  {"it says nothing", secret, `{"data":{"a":"eA=="},"stringData":null}`, `{"data":{"a":"eA=="}}`},
		"number":           {"the server refuses what was written", secret, `{"stringData":{"a":1}}`, `{"stringData":{"a":1}}`},
		"ConfigMap":        {"of another kind it is a field like others", ID{Kind: "ConfigMap"}, `{"stringData":{"a":"1"}}`, `{"stringData":{"a":"1"}}`},

		"rules []":     {"empty", rbac, `{` + role + `,"aggregationRule":{"clusterRoleSelectors":[]},"rules":[]}`, `{"aggregationRule":{"clusterRoleSelectors":[]},` + role + `}`},
		"rules null":   {"null", rbac, `{"aggregationRule":{},"rules":null}`, `{"aggregationRule":{}}`},
		"rules filled": {"filled", rbac, `{"aggregationRule":{},"rules":[{"verbs":["get"]}]}`, `{"aggregationRule":{}}`},
		"rules absent": {"absent", rbac, `{"aggregationRule":{}}`, `{"aggregationRule":{}}`},
		"not aggregated": {"nobody else fills them", rbac, `{"aggregationRule":null,"rules":[{"verbs":["get"]}]}`,
			`{"aggregationRule":null,"rules":[{"verbs":["get"]}]}`},

		"caBundle empty":     {"a placeholder", webhooks, `{"webhooks":[{"clientConfig":{"caBundle":""}}]}`, `{"webhooks":[{"clientConfig":{}}]}`},
		"caBundle Cg==":      {"a line break", webhooks, `{"webhooks":[{"clientConfig":{"caBundle":"Cg=="}}]}`, `{"webhooks":[{"clientConfig":{}}]}`},
		"caBundle text":      {"not injected: somebody meant it", webhooks, `{"webhooks":[{"clientConfig":{"caBundle":"e30="}}]}`, `{"webhooks":[{"clientConfig":{"caBundle":"e30="}}]}`},
		"caBundle injected":  {"no certificate", webhooks, `{` + inject + `,"webhooks":[{"clientConfig":{"caBundle":"e30="}}]}`, `{` + inject + `,"webhooks":[{"clientConfig":{}}]}`},
		"caBundle real":      {"a first value", webhooks, `{` + inject + `,"webhooks":[{"clientConfig":{"caBundle":"` + bundle + `"}}]}`, `{` + inject + `,"webhooks":[{"clientConfig":{"caBundle":"` + bundle + `"}}]}`},
		"caBundle no base64": {"the server refuses it", webhooks, `{"webhooks":[{"clientConfig":{"caBundle":"?"}}]}`, `{"webhooks":[{"clientConfig":{"caBundle":"?"}}]}`},
		"conversion": {"of a definition", definition, `{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":"Cg=="}}}}}`,
			`{"spec":{"conversion":{"webhook":{"clientConfig":{}}}}}`},
		"a property": {"a schema may have the name", definition, `{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"caBundle":{"default":""}}}}}]}}`,
			`{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"caBundle":{"default":""}}}}}]}}`},
		"APIService": {"of an APIService", apiService, `{"spec":{"caBundle":"Cg=="}}`, `{"spec":{}}`},

		"volumeName": {"not bound yet", ID{Kind: "PersistentVolumeClaim"}, `{"spec":{"volumeName":""}}`, `{"spec":{}}`},
		"a volume":   {"asked for", ID{Kind: "PersistentVolumeClaim"}, `{"spec":{"volumeName":"pv"}}`, `{"spec":{"volumeName":"pv"}}`},
		"revision": {"exported", ID{Group: "apps", Kind: "Deployment"}, `{"metadata":{"annotations":{"a":"b","deployment.kubernetes.io/revision":"3"}}}`,
			`{"metadata":{"annotations":{"a":"b"}}}`},
		"rollback": {"its controller would run another template", ID{Group: "apps", Kind: "Deployment"}, `{"metadata":{"annotations":{"a":"b","deprecated.deployment.rollback.to":"1"}}}`,
			`{"metadata":{"annotations":{"a":"b"}}}`},
		"template": {"exported", ID{Group: "apps", Kind: "DaemonSet"}, `{"metadata":{"annotations":{"a":"b","deprecated.daemonset.template.generation":"3"}}}`,
			`{"metadata":{"annotations":{"a":"b"}}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Applied(tc.id, []byte(tc.raw))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
			again, err := Applied(tc.id, got)
			if err != nil || string(again) != string(got) {
				t.Errorf("applied twice is something else: %s, %v", again, err)
			}
		})
	}
}
