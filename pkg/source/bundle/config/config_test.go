package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	all    = InstallModes{AllNamespaces: true}
	own    = InstallModes{OwnNamespace: true}
	single = InstallModes{SingleNamespace: true}
	both   = InstallModes{OwnNamespace: true, SingleNamespace: true}
	any3   = InstallModes{AllNamespaces: true, OwnNamespace: true, SingleNamespace: true}
)

func TestWatchNamespace(t *testing.T) {
	cases := map[string]struct {
		reason string
		modes  InstallModes
		config string
		want   string
		err    string
	}{
		"All":           {"nothing is to be said", all, ``, "", ""},
		"AllUnknown":    {"it watches all, whatever is wished", all, `{"watchNamespace":"a"}`, "", "watchNamespace: unknown field"},
		"Own":           {"it is the one", own, `{"watchNamespace":"light"}`, "light", ""},
		"OwnMissing":    {"it has to be said", own, `{}`, "", "watchNamespace: is missing, and is required"},
		"OwnNull":       {"it has to be said", own, `{"watchNamespace":null}`, "", "watchNamespace: is null, want string"},
		"OwnOther":      {"it can watch no other", own, `{"watchNamespace":"a"}`, "", `watchNamespace: is "a", must be "light"`},
		"Single":        {"another", single, `{"watchNamespace":"a"}`, "a", ""},
		"SingleMissing": {"it has to be said", single, ``, "", "watchNamespace: is missing"},
		"SingleOwn":     {"it cannot watch its own", single, `{"watchNamespace":"light"}`, "", "watchNamespace: must not be the namespace of the operator"},
		"BothOwn":       {"any", both, `{"watchNamespace":"light"}`, "light", ""},
		"BothMissing":   {"it has to be said", both, `{}`, "", "is missing"},
		"AnyNull":       {"null is all", any3, `{"watchNamespace":null}`, "", ""},
		"AnyOne":        {"any", any3, `{"watchNamespace":"a"}`, "a", ""},
		"AnyNone":       {"all", any3, `{}`, "", ""},
		"Pattern":       {"names are DNS-1123 labels", any3, `{"watchNamespace":"A"}`, "", `watchNamespace: is "A", must match pattern`},
		"Long":          {"names are DNS-1123 labels", any3, `{"watchNamespace":"` + strings.Repeat("a", 64) + `"}`, "", "watchNamespace: "},
		"Type":          {"the type is said", any3, `{"watchNamespace":1}`, "", "watchNamespace: is number, want string"},
		"AllAndOwn":     {"its own, or all", InstallModes{AllNamespaces: true, OwnNamespace: true}, `{"watchNamespace":"a"}`, "", `must be "light"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tc.config), tc.modes, "light")
			switch {
			case tc.err != "":
				var invalid *Errors
				if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
				}
			case err != nil || got.WatchNamespace != tc.want:
				t.Errorf("%s: got %q and %v, want %q", tc.reason, got.WatchNamespace, err, tc.want)
			}
		})
	}
}

func TestDeploymentConfig(t *testing.T) {
	const valid = `{"deploymentConfig":{"env":[{"name":"A","value":"1"}],"resources":{"limits":{"cpu":1,"memory":"1Gi"}},"tolerations":[{"operator":"Exists","tolerationSeconds":5}],
		"volumes":[{"name":"v","secret":{"secretName":"s","defaultMode":420}}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"nodeSelector":{"a":"b"},"affinity":{"nodeAffinity":{}},"annotations":{"c":"d"}}}`
	got, err := Parse([]byte(valid), all, "light")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(int64(5), got.Deployment["tolerations"].([]any)[0].(map[string]any)["tolerationSeconds"]); diff != "" {
		t.Errorf("integers stay integers: -want, +got:\n%s", diff)
	}
	const invalid = `{"deploymentConfig":{"selector":{},"env":[{"value":"1"},{"name":"B","valeu":"2"}],"nodeSelector":{"a":1},"volumeMounts":[{"name":"v"}],
		"affinity":null,"tolerations":{}},"other":1}`
	_, err = Parse([]byte(invalid), all, "light")
	want := `configuration: deploymentConfig.affinity: is null, want object
configuration: deploymentConfig.env[0].name: is missing, and is required
configuration: deploymentConfig.env[1].valeu: unknown field
configuration: deploymentConfig.nodeSelector.a: is number, want string
configuration: deploymentConfig.selector: unknown field
configuration: deploymentConfig.tolerations: is object, want array
configuration: deploymentConfig.volumeMounts[0].mountPath: is missing, and is required
configuration: other: unknown field`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for _, text := range []string{`[]`, `{`, `{"watchNamespace":"a","watchNamespace":"b"}`} {
		if _, err := Parse([]byte(text), any3, "light"); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}

// TestCost: parsing a configuration compiles only the types of the settings that it has. Compiling
// all types would cost 85,000 allocations and 7 MB per rendered bundle.
func TestCost(t *testing.T) {
	for name, text := range map[string]string{
		"None": ``, "Namespace": `{"watchNamespace":"light"}`, "Settings": `{"deploymentConfig":{"nodeSelector":{"a":"b"},"env":[{"name":"A","value":"1"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			const most = 20_000
			got := testing.AllocsPerRun(3, func() {
				if _, err := Parse([]byte(text), any3, "light"); err != nil {
					t.Fatal(err)
				}
			})
			if got > most {
				t.Errorf("it takes %.0f allocations, at most %d are expected", got, most)
			}
		})
	}
}

// TestInWordsOfOLM: the messages equal OLM v1's, where its scenarios compare them.
func TestInWordsOfOLM(t *testing.T) {
	for name, tc := range map[string]struct {
		modes        InstallModes
		config, want string
	}{
		"Missing": {own, `{}`, `required field "watchNamespace" is missing`},
		"Other":   {own, `{"watchNamespace":"some-ns"}`, `invalid value "some-ns": must be "light" (the namespace where the operator is installed) because this operator only supports OwnNamespace install mode`},
		"Unknown": {all, `{"watchNamespace":"a"}`, `unknown field "watchNamespace"`},
		"Pattern": {single, `{"watchNamespace":"A_B"}`, `must match pattern`},
		"Several": {all, `{"a":1,"b":2}`, "multiple errors found:\n  - unknown field \"a\"\n  - unknown field \"b\""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.config), tc.modes, "light")
			var found *Errors
			if !errors.As(err, &found) {
				t.Fatalf("the error is %v", err)
			}
			got := found.InWordsOfOLM()
			if !strings.HasPrefix(got, "invalid ClusterExtension configuration: invalid configuration: ") || !strings.Contains(got, tc.want) {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}
