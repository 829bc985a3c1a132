//go:build integration

package server_test

import (
	"hash/fnv"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/penstock-project/penstock/test/framework/cluster"
)

// manner is a use of the API that works with any type. The test does it with a type of
// kube-apiserver and with a type of ours, in the same cluster, and compares the results. So
// kube-apiserver defines the expected behaviour, not this test.
type manner struct {
	do func(s *subject)
	// deviations are the differences between our type and the host's, with reasons.
	deviations []deviation
	// clusterWide compares with a cluster-scoped type of the host.
	clusterWide bool
}

// deviation is an observation in which our type differs. A deviation that no longer occurs is an
// error too.
type deviation struct {
	// of is the kind. If empty, the deviation is for all our kinds.
	of string
	// what is the observation.
	what string
	// host and ours are the values of the host's type and of ours. … matches any text, and empty
	// means no observation.
	host, ours string
	why        string
}

// manners returns the suite by name. The names are prefixes of the objects' names.
func manners() map[string]manner {
	all := map[string]manner{}
	for _, some := range []map[string]manner{
		readManners(), watchManners(), writeManners(), applyManners(), refusedManners(), deleteManners(),
		clientManners(), kubectlManners(), gitopsManners(),
	} {
		for name, m := range some {
			if _, twice := all[name]; twice {
				panic("two manners are named " + name)
			}
			all[name] = m
		}
	}
	return all
}

// servedHost is a host with our API.
type servedHost struct {
	*cluster.Cluster
	server *process
	// dir is the store's directory.
	dir string
}

// TestManners compares the API behaviour of our types with the host's types, with
// kube-controller-manager and without our controllers. Then other tests that need the controller
// manager use the cluster.
func TestManners(t *testing.T) {
	t.Parallel()
	ctrllog.SetLogger(klog.Background())
	c := cluster.Start(t, cluster.Workloads())
	dir := dataDir(t)
	options := newOptions(t, c, dir)
	options.Catalogs = exampleCatalogs(t)
	w := servedHost{Cluster: c, dir: dir, server: start(t, options)}
	t.Run("Suite", func(t *testing.T) {
		for name, m := range manners() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m.compare(t, w, name)
			})
		}
		t.Run("CatalogPackages", func(t *testing.T) {
			t.Parallel()
			catalogPackages(t, w, options.Catalogs)
		})
	})
	t.Run("SupersededInGit", func(t *testing.T) { supersededInGit(t, w) })
	// kube-controller-manager has discovered our types by now: it checks every 30 seconds.
	t.Run("Collector", func(t *testing.T) {
		for name, m := range collectorManners() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m.compare(t, w, name)
			})
		}
	})
	t.Run("GeneratedClients", func(t *testing.T) { generatedClients(t, w) })
	t.Run("AggregatedDiscovery", func(t *testing.T) { aggregatedDiscovery(t, w) })
	t.Run("CompressedWatchList", func(t *testing.T) { compressedWatchList(t, w) })
	t.Run("Neighbours", func(t *testing.T) { neighbours(t, c.In(t)) })
	t.Run("OpenAPIv2", func(t *testing.T) {
		published(t, c, "/openapi/v2", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/{name}/manifests")
	})
	t.Run("OpenAPIv3", func(t *testing.T) {
		published(t, c, "/openapi/v3/apis/olm.operatorframework.io/v1alpha1", "x-kubernetes-group-version-kind", "ClusterExtensionRevisionSpec")
	})
	// This removes the history that all other subtests use.
	t.Run("Expired", func(t *testing.T) { manner{do: w.expired}.compare(t, w, "Expired") })
	t.Run("EmptyStoreSwappedIn", func(t *testing.T) { emptyStoreSwappedIn(t, w) })
}

// published waits until the host's answer for a path contains all texts. kube-apiserver merges our
// OpenAPI at intervals.
func published(t *testing.T, c *cluster.Cluster, path string, texts ...string) {
	t.Helper()
	eventually(t, path, func() error {
		body, _, err := tryGet(t.Context(), c.Config(), path)
		if err != nil {
			return err
		}
		return missing(body, texts)
	})
}

// compared returns the types to compare: all of ours with FULL=1 or if there are deviations.
// Otherwise it returns one type, chosen by the manner's name, because our types share their storage
// and handlers.
func (m manner) compared(name string) []breed {
	all := ours()
	if os.Getenv("FULL") == "1" || len(m.deviations) > 0 {
		return all
	}
	hash := fnv.New32()
	hash.Write([]byte(name)) // never fails
	return []breed{all[hash.Sum32()%uint32(len(all))]}
}

// compare compares the host's type with ours.
func (m manner) compare(t *testing.T, w servedHost, name string) {
	t.Helper()
	base := strings.ToLower(name)
	host := ingress()
	if m.clusterWide {
		host = ingressClass()
	}
	want := m.see(t, w, host, base)
	for _, ours := range m.compared(name) {
		t.Run(ours.kind, func(t *testing.T) {
			got := m.see(t, w, ours, base)
			expected := m.deviate(t, ours.kind, want, got)
			for _, what := range expected.differences(got) {
				t.Errorf("%s:\n%s\t%s\n%s\t%s", what, host.kind, expected.values[what], ours.kind, got.values[what])
			}
		})
	}
}

// see runs the manner with one type.
func (m manner) see(t *testing.T, w servedHost, breed breed, base string) *transcript {
	t.Helper()
	s := newSubject(t, w, breed, base)
	m.do(s)
	return s.seen
}

// deviate returns the expected transcript of our type: the host's transcript with the deviations.
func (m manner) deviate(t *testing.T, kind string, host, ours *transcript) *transcript {
	t.Helper()
	expected := host.clone()
	for _, d := range m.deviations {
		if d.of != "" && d.of != kind {
			continue
		}
		h, o := host.values[d.what], ours.values[d.what]
		if d.why == "" || h == o || !fits(d.host, h) || !fits(d.ours, o) {
			t.Errorf("the deviation in %q differs from its description, or does not occur:\nhost\t%s\nours\t%s", d.what, h, o)
		}
		expected.values[d.what] = o
	}
	return expected
}

// fits reports whether a text matches a pattern, in which … is any text.
func fits(pattern, text string) bool {
	parts := strings.Split(pattern, "…")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("(?s)^" + strings.Join(parts, ".*") + "$").MatchString(text)
}

// transcript has the observed values by name.
type transcript struct{ values map[string]string }

func (t *transcript) clone() *transcript { return &transcript{values: maps.Clone(t.values)} }

// differences returns the observations that differ.
func (t *transcript) differences(other *transcript) []string {
	var all []string
	for what := range t.values {
		if t.values[what] != other.values[what] {
			all = append(all, what)
		}
	}
	for what := range other.values {
		if _, both := t.values[what]; !both {
			all = append(all, what)
		}
	}
	slices.Sort(all)
	return all
}
