//go:build integration

package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/pod"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const deployFolder = "../../artifacts/deploy/"

// TestDeploy applies artifacts/deploy to a real kube-apiserver. No kubelet runs the Pods here;
// TestLeastRights runs the program as their user.
func TestDeploy(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.APIServerArgs(pod.Routing))
	c.MustKubectlInput(kindsOfOthers(), "apply", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Established", "crd", "--all", poll.TimeoutFlag)
	for _, variant := range []string{"embedded", "external", "embedded-cert-manager", "external-cert-manager"} {
		t.Run(variant, func(t *testing.T) { deployed(t, c.In(t), variant) })
	}
	t.Run("console", func(t *testing.T) { deployedConsole(t, c.In(t)) })
	t.Run("Chart", func(t *testing.T) { charts(t, c.In(t)) })
}

func deployed(t *testing.T, c *cluster.Cluster, variant string) {
	manifests := c.MustKubectl("kustomize", deployFolder+variant)
	// kube-apiserver accepts every field, without a warning, for instance of Pod Security. Applying
	// again changes nothing.
	for range 2 {
		out := c.KubectlInput(manifests, "apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-")
		if out.ExitCode != 0 || out.Stderr != "" {
			t.Fatal(out)
		}
	}
	documents := split(t, manifests)
	var deployment appsv1.Deployment
	decode(t, documents["Deployment"][0], &deployment)

	// The arguments are valid flags of the program.
	options, err := server.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	for _, set := range options.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	catalogs := app.NewCatalogs()
	catalogs.AddFlags(flags)
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Args[0] != "serve" {
		t.Errorf("the command of the program is %q", container.Args[0])
	}
	if err := flags.Parse(container.Args[1:]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(options.Validate(), catalogs.Validate()); err != nil {
		t.Errorf("parsing the arguments: %v", err)
	}
	if options.Namespace != deployment.Namespace {
		t.Errorf("the process looks for its Pod in namespace %s, but the Pod is in %s", options.Namespace, deployment.Namespace)
	}
	mounted(t, deployment.Spec.Template.Spec, container.Args)

	asPod(t, c, variant, &deployment)
}

// asPod creates a Pod as the Deployment would, because Pod Security checks Pods.
func asPod(t *testing.T, c *cluster.Cluster, variant string, deployment *appsv1.Deployment) {
	t.Helper()
	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "try-" + variant, Namespace: deployment.Namespace, Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if out := c.KubectlInput(string(raw), "create", "--dry-run=server", "-f", "-"); out.ExitCode != 0 || out.Stderr != "" {
		t.Errorf("a Pod of it: %s", out)
	}
}

// deployedConsole: kube-apiserver accepts the console too. The console has neither credentials nor
// rights.
func deployedConsole(t *testing.T, c *cluster.Cluster) {
	manifests := c.MustKubectl("kustomize", deployFolder+"console")
	if out := c.KubectlInput(manifests, "apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-"); out.ExitCode != 0 || out.Stderr != "" {
		t.Fatal(out)
	}
	documents := split(t, manifests)
	var deployment appsv1.Deployment
	decode(t, documents["Deployment"][0], &deployment)
	spec := deployment.Spec.Template.Spec
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Error("the Pod has the token of its ServiceAccount")
	}
	for kind := range documents {
		if strings.Contains(kind, "Role") {
			t.Errorf("the manifests have a %s", kind)
		}
	}
	for _, volume := range spec.Volumes {
		if volume.Projected != nil || volume.Secret != nil && volume.Secret.SecretName != "penstock-console-tls" {
			t.Errorf("volume %s has credentials", volume.Name)
		}
	}
	account := "system:serviceaccount:" + deployment.Namespace + ":" + spec.ServiceAccountName
	nobody := c.MustKubectl("auth", "can-i", "--list", "--as=system:serviceaccount:nowhere:nobody", "--as-group=system:serviceaccounts", "--as-group=system:authenticated")
	if may := c.MustKubectl("auth", "can-i", "--list", "--as="+account, "--as-group=system:serviceaccounts", "--as-group=system:authenticated"); may != nobody {
		t.Errorf("%s may:\n%s\nand a ServiceAccount without any role:\n%s", account, may, nobody)
	}
	mounted(t, spec, spec.Containers[0].Args)
	asPod(t, c, "console", &deployment)
}

// mounted fails if an argument names a file that is in no volume.
func mounted(t *testing.T, pod corev1.PodSpec, args []string) {
	t.Helper()
	volumes := map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
	}
	var paths []string
	for _, mount := range pod.Containers[0].VolumeMounts {
		if !volumes[mount.Name] {
			t.Errorf("there is no volume %s", mount.Name)
		}
		paths = append(paths, mount.MountPath+"/")
	}
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(value, "/") && !slices.ContainsFunc(paths, func(path string) bool { return strings.HasPrefix(value, path) }) {
			t.Errorf("%s is on no volume", arg)
		}
	}
}

// split returns the documents of a stream by kind.
func split(t *testing.T, stream string) map[string][][]byte {
	t.Helper()
	found := map[string][][]byte{}
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(stream)))
	defer documents.Close()
	buffer := make([]byte, 1<<20)
	for {
		n, err := documents.Read(buffer)
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		document := slices.Clone(buffer[:n])
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		found[meta.Kind] = append(found[meta.Kind], document)
	}
}

func decode(t *testing.T, document []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Fatalf("%v:\n%s", err, document)
	}
}

// unused lists the rights of rules that no request needed, one per line.
func unused(rules []rbacv1.PolicyRule, requests plane.Requests) []string {
	var left []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					names := rule.ResourceNames
					if len(names) == 0 {
						names = []string{""}
					}
					for _, name := range names {
						if !slices.ContainsFunc(requests, func(r plane.Request) bool { return uses(r, group, resource, name, verb) }) {
							left = append(left, strings.TrimSpace(fmt.Sprintf("%s %s.%s %s", verb, resource, group, name)))
						}
					}
				}
			}
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}

func uses(r plane.Request, group, resource, name, verb string) bool {
	asked := r.Resource
	if r.Subresource != "" {
		asked += "/" + r.Subresource
	}
	if r.Group != group || asked != resource || name != "" && r.Name != name {
		return false
	}
	switch verb {
	case "create":
		// An apply that creates the object needs both rights.
		return r.Verb == verb || r.Verb == "patch" && r.Code == 201
	case "list":
		// A watch can include its list, so it needs the right too.
		return r.Verb == verb || r.Verb == "watch"
	default:
		return r.Verb == verb
	}
}

// kindsOfOthers returns definitions in place of those of cert-manager and the Prometheus operator.
func kindsOfOthers() string {
	var out strings.Builder
	for _, kind := range []struct{ group, version, kind string }{
		{"cert-manager.io", "v1", "Issuer"}, {"cert-manager.io", "v1", "Certificate"},
		{"monitoring.coreos.com", "v1", "ServiceMonitor"}, {"monitoring.coreos.com", "v1", "PrometheusRule"},
	} {
		singular := strings.ToLower(kind.kind)
		fmt.Fprintf(&out, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[2]s, annotations: {api-approved.kubernetes.io: "unapproved, a test"}}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]ss, singular: %[1]s}
  versions: [{name: %[4]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, singular, kind.group, kind.kind, kind.version)
	}
	return out.String()
}
