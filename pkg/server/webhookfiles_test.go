package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWebhookFiles: webhooks from files are refused before the server starts. The error names the
// file, the plugin and the field.
func TestWebhookFiles(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("beside.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nstaticManifestsDir: /m\n")
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	inline := func(plugin, kind string) string {
		return "- name: " + plugin + "\n  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: " + kind + ", staticManifestsDir: /m}\n"
	}
	const refused = `staticManifestsDir is "/m", and must be empty`
	cases := map[string]struct {
		reason  string
		content string
		want    []string
	}{
		"Webhooks": {
			reason:  "each plugin is named, not the first; inline and in a file of its own",
			content: head + inline("ValidatingAdmissionWebhook", "WebhookAdmissionConfiguration") + "- name: MutatingAdmissionWebhook\n  path: beside.yaml\n",
			want:    []string{"plugin ValidatingAdmissionWebhook: " + refused, "plugin MutatingAdmissionWebhook: " + refused},
		},
		"Policies": {
			reason:  "policies from files are enforced",
			content: head + inline("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration"),
		},
		"Kubeconfig": {
			reason: "the file has other uses, which stay",
			content: head + "- name: ValidatingAdmissionWebhook\n" +
				"  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: /k}\n",
		},
		"OtherPlugins": {
			reason:  "plugins of kube-apiserver are not Penstock's",
			content: head + "- {name: PodSecurity, configuration: {staticManifestsDir: /m}}\n",
		},
		"NoConfiguration": {
			reason:  "nothing to refuse",
			content: head + "- name: ValidatingAdmissionWebhook\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := write(name+".yaml", tc.content)
			err := errors.Join(parsedOptions(t, "--admission-control-config-file="+file).validateWebhookFiles()...)
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--admission-control-config-file "+file+": ") {
					t.Errorf("%s: the error does not say %q:\n%v", tc.reason, want, err)
				}
			}
		})
	}
	missing := filepath.Join(folder, "nowhere.yaml")
	if err := parsedOptions(t, "--data-dir=/d", "--admission-control-config-file="+missing).Validate(); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a file that is not there: %v", err)
	}
}
