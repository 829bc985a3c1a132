package gitops

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// host is a cluster with Penstock, in which Deployments become available. Helm's SDK creates its
// releases.
type host struct {
	*cluster.Cluster
	t       *testing.T
	program *penstock.Program
	dataDir string
	server  *penstock.Server
}

func newHost(t *testing.T) *host {
	t.Helper()
	// The name of the real program, instead of this test's.
	kube.ManagedFieldsManager = "helm"
	c := cluster.Start(t, cluster.Workloads())
	h := &host{Cluster: c, t: t, program: penstock.Build(t), dataDir: penstock.DataDir(t)}
	h.server = h.program.Serve(t, c, h.dataDir)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the server complained of:\n%s", h.server.Complaints())
		}
	})
	return h
}

func (h *host) in(t *testing.T, namespace string) *site {
	t.Helper()
	in := *h
	in.Cluster, in.t = h.Cluster.In(t), t
	in.MustKubectl("create", "namespace", namespace)
	return &site{host: &in, namespace: namespace, release: namespace, serverSide: true}
}

type site struct {
	*host
	namespace, release string
	// serverSide is true to apply as Helm 4 does, false as Helm 3 does.
	serverSide bool
	hooks      []string
	installed  bool
	// anyOwner ignores owners, and OLM's labels that name them, when objects are compared.
	anyOwner bool
	// most is the largest number of writes to one object during an adoption; 0 means 2.
	most int
}

// version returns the objects of a version of the release. The first object contains the version.
// The last one has a field that only odd versions have.
func (s *site) version(n int) []string {
	odd := ""
	if n%2 == 1 {
		odd = "  odd: \"yes\"\n"
	}
	files := []string{
		fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata:\n  version: \"%d\"\n%s", n, odd),
		fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: %s}\nstringData: {token: \"t%d\"}\n", s.namespace, n),
		fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "example.com/web:v%d", ports: [{containerPort: 80}]}
`, n),
		"apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n",
		fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s-reader}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n", s.namespace),
	}
	if n > 1 {
		files = append(files, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: b}\n")
	}
	return append(files, s.hooks...)
}

func (s *site) configuration() *action.Configuration {
	flags, kubeconfig := genericclioptions.NewConfigFlags(true), s.Kubeconfig()
	flags.KubeConfig, flags.Namespace = &kubeconfig, &s.namespace
	configuration := action.NewConfiguration()
	if err := configuration.Init(flags, s.namespace, "secrets"); err != nil {
		s.t.Fatal(err)
	}
	return configuration
}

// helm installs or upgrades the release, without waiting for workloads.
func (s *site) helm(version int, files ...string) error {
	packed := &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: fmt.Sprintf("1.%d.0", version), APIVersion: chart.APIVersionV2}}
	for i, file := range files {
		packed.Templates = append(packed.Templates, &common.File{Name: fmt.Sprintf("templates/%d.yaml", i), Data: []byte(file)})
	}
	if !s.installed {
		do := action.NewInstall(s.configuration())
		do.ReleaseName, do.Namespace, do.Timeout = s.release, s.namespace, patience
		do.WaitStrategy, do.ServerSideApply = kube.HookOnlyStrategy, s.serverSide
		_, err := do.RunWithContext(s.t.Context(), packed, nil)
		s.installed = err == nil
		return err
	}
	do := action.NewUpgrade(s.configuration())
	do.Namespace, do.Timeout = s.namespace, patience
	do.WaitStrategy, do.ServerSideApply, do.ForceConflicts = kube.HookOnlyStrategy, fmt.Sprint(s.serverSide), s.serverSide
	_, err := do.RunWithContext(s.t.Context(), s.release, packed, nil)
	return err
}

// helms installs several versions of a release, one after the other, and waits until the Deployment
// has rolled out the last one.
func (s *site) helms(versions ...int) {
	s.t.Helper()
	for _, version := range versions {
		if err := s.helm(version, s.version(version)...); err != nil {
			s.t.Fatalf("Helm, version %d: %v", version, err)
		}
	}
	s.MustKubectl("rollout", "status", "-n", s.namespace, "deployment/web", poll.TimeoutFlag)
}

func (s *site) adopt(flags ...string) penstock.Output {
	s.t.Helper()
	return s.program.Run(s.t, "", append([]string{"adopt", "helm", "--kubeconfig", s.Kubeconfig(), s.release, "-n", s.namespace}, flags...)...)
}

func (s *site) mustAdopt(flags ...string) string {
	s.t.Helper()
	out := s.adopt(flags...)
	if out.ExitCode != 0 {
		s.t.Fatalf("%s\n%s", out, s.Kubectl("get", "cer", "-o", "yaml").Stdout)
	}
	return out.Stdout + out.Stderr
}

func (s *site) says(text string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// refuses runs the command, which must fail with these reasons and write nothing.
func (s *site) refuses(flags []string, parts ...string) {
	s.t.Helper()
	mark := s.Audit().Mark()
	out := s.adopt(flags...)
	if out.ExitCode == 0 {
		s.t.Errorf("it is not refused: %s", out)
	}
	s.says(out.Stderr, parts...)
	s.nothingWritten(mark)
}

// nothingWritten checks in the audit log that the command wrote nothing.
func (s *site) nothingWritten(mark plane.Mark) {
	s.t.Helper()
	for _, r := range s.Audit().Since(mark, plane.ByAgent("penstock/"), plane.Writes()) {
		ours := r.Namespace == s.namespace || r.Namespace == "" && strings.Contains(r.URI, "/"+s.namespace+"-")
		if ours && !strings.Contains(r.URI, "dryRun=All") && !strings.Contains(r.URI, "check=true") && r.Resource != "events" {
			s.t.Errorf("it writes: %s", r)
		}
	}
}

func (s *site) plugin(line string) string {
	s.t.Helper()
	out := plugin.User{Kubeconfig: s.Kubeconfig()}.Run(s.t, line)
	if out.ExitCode != 0 {
		s.t.Fatal(out)
	}
	return out.Stdout
}

// state is the part of an object that must not change.
type state struct {
	UID        string
	Generation int64
	// Content is the object without status and managedFields.
	Content string
}

func (s *site) objects() map[string]state {
	s.t.Helper()
	found := map[string]state{}
	for _, name := range []string{"configmap/settings", "configmap/more", "secret/token", "deployment/web", "service/web", "clusterrole/" + s.namespace + "-reader"} {
		out := s.Kubectl("get", "-n", s.namespace, name, "-o", "json")
		if out.ExitCode != 0 {
			continue
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(out.Stdout), &object); err != nil {
			s.t.Fatal(err)
		}
		metadata := object["metadata"].(map[string]any)
		generation, _ := metadata["generation"].(float64)
		one := state{UID: metadata["uid"].(string), Generation: int64(generation)}
		for _, field := range []string{"resourceVersion", "managedFields", "uid", "generation", "creationTimestamp"} {
			delete(metadata, field)
		}
		delete(object, "status")
		labels, _ := metadata["labels"].(map[string]any)
		if s.anyOwner {
			delete(metadata, "ownerReferences")
			for _, label := range []string{"olm.owner", "olm.owner.kind", "olm.owner.namespace"} {
				delete(labels, label)
			}
		}
		delete(labels, "penstock.dev/chain")
		annotations, _ := metadata["annotations"].(map[string]any)
		delete(annotations, "penstock.dev/applied")
		for field, entries := range map[string]map[string]any{"labels": labels, "annotations": annotations} {
			if len(entries) == 0 {
				delete(metadata, field)
			}
		}
		raw, err := json.Marshal(object)
		if err != nil {
			s.t.Fatal(err)
		}
		one.Content = string(raw)
		found[name] = one
	}
	return found
}

// secrets returns the labels and data of Helm's Secrets.
func (s *site) secrets() string {
	s.t.Helper()
	return s.MustKubectl("get", "secrets", "-n", s.namespace, "-l", "owner=helm",
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.labels} {.data}{"\n"}{end}`)
}

func (s *site) read(path string, args ...string) string {
	s.t.Helper()
	return s.MustKubectl(append([]string{"get", "-n", s.namespace, "-o", "jsonpath={" + path + "}"}, args...)...)
}

func (s *site) becomes(want, path string, args ...string) {
	s.t.Helper()
	s.MustKubectl(append([]string{"wait", "-n", s.namespace, poll.TimeoutFlag, "--for=jsonpath={" + path + "}=" + want}, args...)...)
}

func (s *site) managers(object string) string {
	s.t.Helper()
	return s.read(`range .metadata.managedFields[*]}{.manager}/{.operation}{.subresource} {end`, object, "--show-managed-fields")
}
