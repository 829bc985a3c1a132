package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	bundles "github.com/penstock-project/penstock/pkg/source/bundle"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/registry"
)

type packages struct {
	// folders are the folders of the bundles, by the name of the package, which is also the name of
	// the release.
	folders  map[string]string
	releases []release
}

func packagesOf(t *testing.T, n int) packages {
	t.Helper()
	const namespace = "small"
	all := packages{folders: map[string]string{}}
	for i := range n {
		name := fmt.Sprintf("small-%04d", i)
		all.folders[name] = bundleFolder(t, name, "AllNamespaces")
		all.releases = append(all.releases, bundleRelease(t, name, all.folders[name], bundles.Options{InstallNamespace: namespace}))
	}
	return all
}

func bundleFolder(t *testing.T, name, mode string) string {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "metadata", "annotations.yaml"), fmt.Sprintf(bundleAnnotations, name))
	write(t, filepath.Join(folder, "manifests", "csv.yaml"), fmt.Sprintf(bundleCSV, name, mode))
	write(t, filepath.Join(folder, "manifests", "config.yaml"), fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {value: %q}}", name, strings.Repeat("setting\n", 40)))
	return folder
}

func bundleRelease(t *testing.T, name, folder string, options bundles.Options) release {
	t.Helper()
	rendered, err := bundles.Renderer{Options: options}.Render(t.Context(), os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	r := release{name: name, namespace: options.InstallNamespace}
	for _, one := range rendered.Phases {
		made := phase{name: one.Name}
		for _, object := range one.Objects {
			decoded := map[string]any{}
			if err := json.Unmarshal(object.JSON, &decoded); err != nil {
				t.Fatal(err)
			}
			made.objects = append(made.objects, decoded)
		}
		r.phases = append(r.phases, made)
	}
	return r
}

const (
	bundleAnnotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: %s
`
	bundleCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: %[1]s.v1.0.0}
spec:
  displayName: %[1]s
  version: 1.0.0
  installModes: [{type: %[2]s, supported: true}]
  install:
    strategy: deployment
    spec:
      deployments:
      - name: %[1]s
        spec:
          replicas: 1
          selector: {matchLabels: {app: %[1]s}}
          template:
            metadata: {labels: {app: %[1]s}}
            spec: {serviceAccountName: %[1]s, containers: [{name: main, image: "registry.example.com/%[1]s:v1"}]}
      permissions:
      - serviceAccountName: %[1]s
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// extensions is Penstock with a user who creates ClusterExtensions and waits until they are
// installed.
type extensions struct {
	w      *casePlane
	called string
	server *penstock.Server
	client dynamic.Interface
	spec   func(release) map[string]any
}

var _ system = &extensions{}

// startCatalog starts Penstock with a catalog of the packages, and waits until the catalog is
// served.
func startCatalog(w *casePlane, program *penstock.Program, content packages, called string, flags ...string) *extensions {
	w.t.Helper()
	images := registry.Serve(w.t)
	var catalog strings.Builder
	for _, r := range content.releases {
		ref := images.Push(w.t, content.folders[r.name], "bundles/"+r.name+":v1")
		fmt.Fprintf(&catalog, "---\n{schema: olm.package, name: %[1]s, defaultChannel: stable}\n---\n{schema: olm.channel, package: %[1]s, name: stable, entries: [{name: %[1]s.v1.0.0}]}\n"+
			"---\n{schema: olm.bundle, package: %[1]s, name: %[1]s.v1.0.0, image: %[2]q, properties: [{type: olm.package, value: {packageName: %[1]s, version: 1.0.0}}]}\n", r.name, ref)
	}
	folder := w.t.TempDir()
	write(w.t, filepath.Join(folder, "catalog.yaml"), catalog.String())
	ref := images.Push(w.t, folder, "catalogs/all")
	c := startExtensions(w, program, images, called, flags...)
	c.spec = func(r release) map[string]any {
		return map[string]any{"source": map[string]any{"sourceType": extension.SourceCatalog, "catalog": map[string]any{"packageName": r.name}}}
	}
	c.create(clustercatalog.Resource.Resource, map[string]any{"kind": "ClusterCatalog", "metadata": map[string]any{"name": "all"},
		"spec": map[string]any{"source": map[string]any{"type": "Image", "image": map[string]any{"ref": ref}}}})
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := c.until(ctx, "clustercatalogs", clustercatalog.Serving, map[string]bool{"all": true}); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// startExtensions starts Penstock with the credentials of a registry.
func startExtensions(w *casePlane, program *penstock.Program, images *registry.Registry, called string, flags ...string) *extensions {
	w.t.Helper()
	c := &extensions{w: w, called: called}
	flags = append(flags, "--registry-cas-dir="+images.Dir, "--registry-auth-file="+filepath.Join(images.Dir, registry.AuthFile))
	c.server = program.Serve(w.t, c, penstock.DataDir(w.t), flags...)
	config := rest.CopyConfig(w.config)
	config.UserAgent, config.QPS = author, -1
	var err error
	if c.client, err = dynamic.NewForConfig(config); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// Kubeconfig returns the kubeconfig for Penstock.
func (c *extensions) Kubeconfig() string { return c.w.kubeconfig }

func (c *extensions) name() string { return c.called }

// create creates an object. It retries until the definition and the webhooks of its kind are ready.
func (c *extensions) create(resource string, object map[string]any) {
	c.w.t.Helper()
	object["apiVersion"] = extension.Resource.GroupVersion().String()
	err := errors.New("not tried")
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); <-time.After(settling) {
		_, err = c.client.Resource(extension.Resource.GroupVersion().WithResource(resource)).Create(c.w.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	}
	if err != nil {
		c.w.t.Fatal(err)
	}
}

func (c *extensions) apply(ctx context.Context, releases []release) (time.Duration, error) {
	wanted := map[string]bool{}
	for _, r := range releases {
		wanted[r.name] = true
	}
	began := time.Now()
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, r := range releases {
		group.Go(func() error {
			spec := c.spec(r)
			spec["namespace"] = r.namespace
			_, err := c.client.Resource(extension.Resource).Create(writing, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": extension.Resource.GroupVersion().String(), "kind": extension.Kind.Kind, "metadata": map[string]any{"name": r.name}, "spec": spec,
			}}, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("writing ClusterExtensions: %w", err)
	}
	// The engine's time ends when all objects are available, which Helm does not check.
	err := c.until(ctx, extension.Resource.Resource, status.Installed, wanted)
	return time.Since(began), err
}

func (c *extensions) until(ctx context.Context, resource, kind string, wanted map[string]bool) error {
	client := c.client.Resource(extension.Resource.GroupVersion().WithResource(resource))
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing %s: %w", resource, err)
	}
	var mu sync.Mutex
	missing := len(wanted)
	is := map[string]bool{}
	note := func(object *unstructured.Unstructured) bool {
		mu.Lock()
		defer mu.Unlock()
		if wanted[object.GetName()] && !is[object.GetName()] && isTrue(object, kind) {
			is[object.GetName()] = true
			missing--
		}
		return missing == 0
	}
	for i := range list.Items {
		if note(&list.Items[i]) {
			return nil
		}
	}
	changes, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return fmt.Errorf("watching %s: %w", resource, err)
	}
	defer changes.Stop()
	for {
		select {
		case change, open := <-changes.ResultChan():
			if !open {
				return fmt.Errorf("the watch of %s has ended, and %d are not %s", resource, missing, kind)
			}
			if object, ok := change.Object.(*unstructured.Unstructured); ok && change.Type != watch.Deleted && note(object) {
				return nil
			}
		case <-c.server.Ended():
			return errors.New("penstock has ended: " + c.server.Log())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d of %d %s to be %s: %w\n%s", missing, len(wanted), resource, kind, context.Cause(ctx), c.server.Complaints())
		}
	}
}

func isTrue(object *unstructured.Unstructured, kind string) bool {
	read := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	content, err := object.MarshalJSON()
	if err != nil || json.Unmarshal(content, &read) != nil {
		return false
	}
	return meta.IsStatusConditionTrue(read.Status.Conditions, kind)
}

// rollback, repair and remove are measured only for plain revisions.
func (c *extensions) rollback(context.Context, []release) (time.Duration, error) {
	return 0, errors.ErrUnsupported
}

func (c *extensions) repair(context.Context, []release) (time.Duration, error) {
	return 0, errors.ErrUnsupported
}

func (c *extensions) remove(context.Context, []release) (time.Duration, error) {
	return 0, errors.ErrUnsupported
}

func (c *extensions) usage() (usage, error) { return usageOf(c.server.Pid()) }
func (c *extensions) rest() error           { return forgetPeak(c.server.Pid()) }

// sends matches the requests of Penstock and of the author.
func (c *extensions) sends(r plane.Request) bool {
	return r.UserAgent == author || strings.HasPrefix(r.UserAgent, "penstock/")
}
