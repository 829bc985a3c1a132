package cause_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
)

// parse decodes an object as a cluster returns it.
func parse[T any](t *testing.T, text string) T {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

func pod(t *testing.T, name, spec, status string) corev1.Pod {
	t.Helper()
	indent := func(text string) string {
		return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
	}
	return parse[corev1.Pod](t, "metadata: {namespace: a, name: "+name+"}\nspec:\n"+indent(spec)+"status:\n"+indent(status))
}

const main = `
containers:
- name: main
  image: quay.io/example/server:1
`

func deploymentID() manifest.ID {
	return manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "server"}
}

// said returns the text of a cause.
func said(c cause.Cause, found bool) string {
	if !found {
		return ""
	}
	return c.String()
}

// secret is a confidential value in texts of components.
const secret = "hunter2"
