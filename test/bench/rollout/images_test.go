package rollout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/extension"
	bundles "github.com/penstock-project/penstock/pkg/source/bundle"
	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/cable"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// nameBundles is Penstock with ClusterExtensions of bundles, which it renders in its own process.
// nameCharts is Penstock with charts of the same objects, each of which it renders in a new
// process.
const (
	nameBundles = "penstock, bundles"
	nameCharts  = "penstock, charts"
)

// perImage is the number of extensions of the same image, each in its own namespace.
const perImage = 5

// TestImages measures pulling and rendering of images: ClusterExtensions of images in one registry
// beside Helm's SDK, which pulls charts of the same objects.
func TestImages(t *testing.T) {
	if os.Getenv("BENCH") != "images" {
		t.Skip("a benchmark that takes minutes and wants the machine for itself: run it by `make bench SUITE=images`")
	}
	count := 20
	if os.Getenv("FULL") == "0" {
		count = 2
	}
	b := &bench{report: &measure.Report{}, program: penstock.Build(t), peer: buildPeer(t), began: time.Now()}
	fmt.Println(measure.Machine(b.began))
	for _, roundTrip := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(roundTrip.String(), func(t *testing.T) { b.ofImages(t, count, roundTrip) })
	}
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(b.began).Round(time.Second))
	if err := b.report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// ofImages installs extensions of count images, and then the same extensions in other namespaces.
// The first installation pulls the images. The second installation finds them in the store.
func (b *bench) ofImages(t *testing.T, count int, roundTrip time.Duration) {
	images, releases := imagesOf(t, count, roundTrip)
	n := len(releases[0])
	table := b.report.Table(fmt.Sprintf("%d extensions of %d images, the registry %s away", n, count, roundTrip),
		"system", "images", "installed after, s", "each, ms", "processor, s", "of kube-apiserver, s", "peak of heap and stacks, MB", "requests")
	for _, name := range []string{nameBundles, nameCharts, nameHelm} {
		t.Run(name, func(t *testing.T) {
			w := newCasePlane(t, 0)
			s, pid := b.startImages(w, images, name)
			<-time.After(settling)
			for i, state := range []string{"pulled", "there already"} {
				b.say("%d extensions of %d images, %s away: %s: %s", n, count, roundTrip, name, state)
				w.namespaces(releases[i])
				peak := watchPeak(pid)
				did := w.step(s, func(ctx context.Context) (time.Duration, error) { return s.apply(ctx, releases[i]) })
				b.check(w, s, bundle{}, step{name: "install", leads: releases[i]})
				table.Row(name, state, fmt.Sprintf("%.1f", did.millis/1000), fmt.Sprintf("%.0f", did.millis/float64(n)), fmt.Sprintf("%.1f", did.clientCPU/1000),
					fmt.Sprintf("%.1f", did.serverCPU/1000), fmt.Sprintf("%.0f", measure.MB(peak())), fmt.Sprint(did.requests()))
			}
		})
	}
}

// startImages starts a system with the credentials of a registry, and returns its process, too.
func (b *bench) startImages(w *casePlane, images *registry.Registry, name string) (system, int) {
	w.t.Helper()
	if name == nameHelm {
		helm := startPeer(w, b.peer, nameHelm, "helm", parallel)
		helm.images = images
		return helm, helm.pid
	}
	c := startExtensions(w, b.program, images, name)
	c.spec = func(r release) map[string]any {
		if name == nameCharts {
			return map[string]any{"source": map[string]any{"sourceType": extension.SourceChart, "chart": map[string]any{"ref": r.chart}}}
		}
		return map[string]any{
			"source": map[string]any{"sourceType": extension.SourceImage, "image": map[string]any{"ref": r.bundle}},
			"config": map[string]any{"configType": "Inline", "inline": map[string]any{"watchNamespace": r.namespace}},
		}
	}
	// The webhooks record the author of an extension.
	c.server.Await(w.t, "The host cluster serves our API")
	w.quiet(c)
	return c, c.server.Pid()
}

// imagesOf pushes bundles, and charts of the same objects, to a registry with a round trip, and
// returns two lists of releases of them.
func imagesOf(t *testing.T, count int, roundTrip time.Duration) (images *registry.Registry, releases [2][]release) {
	t.Helper()
	way := cable.New(t, "")
	// Clients connect through the delay with the registry's password.
	images, err := registry.Start(t.TempDir(), registry.Options{Listen: "127.0.0.1:0", User: "me", Password: "lamp", MirrorOf: way.Address()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = images.Close() })
	way.LeadTo(images.Host)
	way.Far(t, roundTrip)
	for i := range count {
		name := fmt.Sprintf("small-%02d", i)
		folder := bundleFolder(t, name, "OwnNamespace")
		in := func(namespace string) release {
			return bundleRelease(t, name, folder, bundles.Options{InstallNamespace: namespace, Config: fmt.Appendf(nil, `{"watchNamespace": %q}`, namespace)})
		}
		push := func(folder, kind string) string {
			return strings.Replace(images.Push(t, folder, kind+"/"+name+":1.0.0"), images.Host, way.Address(), 1)
		}
		bundle, chart := push(folder, "bundles"), push(chartFolder(t, in("namespace-of-release")), "charts")
		for list := range releases {
			for n := range perImage {
				r := in(fmt.Sprintf("space-%d-%d", list, n))
				r.name, r.bundle, r.chart = fmt.Sprintf("%s-%d-%d", name, list, n), bundle, chart
				releases[list] = append(releases[list], r)
			}
		}
	}
	return images, releases
}

// chartFolder writes a chart with the objects of a release. Its templates replace the release's
// namespace by the namespace of each installation.
func chartFolder(t *testing.T, r release) string {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "Chart.yaml"), fmt.Sprintf("{apiVersion: v2, name: %s, version: 1.0.0}", r.name))
	for i, object := range r.objects() {
		write(t, filepath.Join(folder, "templates", fmt.Sprintf("%04d.yaml", i)), strings.ReplaceAll(string(encoded(object)), r.namespace, "{{ .Release.Namespace }}"))
	}
	return folder
}
