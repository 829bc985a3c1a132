package kubeconfig

import (
	"fmt"
	"strings"
	"testing"
)

func written(cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: there
contexts: [{name: there, context: {cluster: c, user: u}}, {name: elsewhere, context: {cluster: c, user: other}}]
clusters: [{name: c, cluster: {%s}}]
users: [{name: u, user: {%s}}, {name: other, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}}}]
`, cluster, user)
}

// TestParse: for a kubeconfig, the process runs no program, reads no file and connects only to its
// server.
func TestParse(t *testing.T) {
	const server, token = `server: "https://there.example.com:6443/prefix"`, `token: t0ken`
	cases := map[string]struct {
		reason string
		raw    string
		want   string
	}{
		"Token":       {reason: "everything is in it; other contexts are not looked at", raw: written(server, token)},
		"Certificate": {reason: "so it is here", raw: written(server, `client-certificate-data: YQ==, client-key-data: YQ==`)},
		"Nothing":     {reason: "no file is no kubeconfig", want: "no current-context"},
		"Garbage":     {reason: "nor is this", raw: "a: [", want: "not a kubeconfig"},
		"NoContext":   {reason: "the current one counts", raw: strings.Replace(written(server, token), "current-context: there", "current-context: gone", 1), want: `"gone" is not among its contexts`},
		"NoUser":      {reason: "it names one", raw: strings.Replace(written(server, token), "user: u}", "user: gone}", 1), want: `"gone", which is not among its users`},
		"NoCluster":   {reason: "it names one", raw: strings.Replace(written(server, token), "cluster: c,", "cluster: gone,", 1), want: `"gone", which is not among its clusters`},
		"Exec":        {reason: "a program", raw: written(server, `exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}`), want: "exec (a program)"},
		"Provider":    {reason: "a program", raw: written(server, `auth-provider: {name: gcp}`), want: "auth-provider (a program)"},
		"TokenFile":   {reason: "a file", raw: written(server, `tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token`), want: "tokenFile (a file)"},
		"KeyFile":     {reason: "files", raw: written(server, `client-certificate: /a, client-key: /b`), want: "client-certificate (a file), client-key (a file)"},
		"CAFile":      {reason: "a file", raw: written(server+`, certificate-authority: /a`, token), want: "certificate-authority (a file)"},
		"Both":        {reason: "a file is one also beside data", raw: written(server, `client-certificate: /a, client-certificate-data: YQ==, client-key-data: YQ==`), want: "client-certificate (a file)"},
		"Proxy":       {reason: "another server", raw: written(server+`, proxy-url: "http://a"`, token), want: "proxy-url"},
		"Insecure":    {reason: "any other server", raw: written(server+`, insecure-skip-tls-verify: true`, token), want: "insecure-skip-tls-verify"},
		"As":          {reason: "another name", raw: written(server, token+`, as: admin`), want: "as (another name)"},
		"Plain":       {reason: "credentials for everybody who listens", raw: written(`server: "http://there.example.com"`, token), want: "must begin with https://"},
		"NoServer":    {reason: "none is no default", raw: written(``, token), want: "it cannot be used"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config, err := Parse([]byte(tc.raw))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want == "":
				if config.Host != "https://there.example.com:6443/prefix" || config.ExecProvider != nil || config.CAFile != "" {
					t.Errorf("%s: %+v", tc.reason, config)
				}
			case err == nil || !strings.Contains(err.Error(), tc.want):
				t.Errorf("%s: %v, want %q in it", tc.reason, err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(written(`server: "https://a"`, `token: t`))
	f.Add(written(`server: "https://a"`, `exec: {command: rm}`))
	f.Fuzz(func(t *testing.T, raw string) {
		config, err := Parse([]byte(raw))
		if err != nil {
			return
		}
		if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.CAFile != "" ||
			config.CertFile != "" || config.KeyFile != "" || config.Impersonate.UserName != "" || !strings.HasPrefix(config.Host, "https://") {
			t.Errorf("%q gives %+v", raw, config)
		}
	})
}
