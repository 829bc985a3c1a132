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

// manner is something that people and programs do with any type. It is done to a
// type of kube-apiserver's own and to ours, in the same cluster, and what was seen
// must be the same: kube-apiserver says what is expected, not this test.
type manner struct {
	do func(s *subject)
	// deviations are the differences between our type and the host's, with reasons.
	deviations []deviation
	// clusterWide compares with a type that has no namespace, where that matters.
	clusterWide bool
}

// deviation is one observation in which a type of ours differs. A deviation that is gone is
// an error, too.
type deviation struct {
	// of is the kind; empty for every one of ours.
	of string
	// what is the observation.
	what string
	// host and ours are the values of the host's type and of ours, with … for any text; empty for
	// no observation.
	host, ours string
	why        string
}

// manners is the suite, by name. Names begin the names of the objects.
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

// servedHost is a host with ours.
type servedHost struct {
	*cluster.Cluster
	server *process
	// dir is that of the store.
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
	// By now the controller-manager has discovered our types: it looks twice a minute.
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
	// It takes the past away from everybody.
	t.Run("Expired", func(t *testing.T) { manner{do: w.expired}.compare(t, w, "Expired") })
	t.Run("EmptyStoreSwappedIn", func(t *testing.T) { emptyStoreSwappedIn(t, w) })
}

// published returns when the host answers a path with all texts: it merges our OpenAPI with its own
// at intervals.
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

// compared are those of ours with which it is done: each one with FULL=1, and where one
// may differ; otherwise, as all have one storage and one way of requests, one of them by the
// name of the manner.
func (m manner) compared(name string) []breed {
	all := ours()
	if os.Getenv("FULL") == "1" || len(m.deviations) > 0 {
		return all
	}
	hash := fnv.New32()
	hash.Write([]byte(name)) // it has no errors
	return []breed{all[hash.Sum32()%uint32(len(all))]}
}

// compare does it to the host's type and to ours.
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

// see does it to one type.
func (m manner) see(t *testing.T, w servedHost, breed breed, base string) *transcript {
	t.Helper()
	s := newSubject(t, w, breed, base)
	m.do(s)
	return s.seen
}

// deviate returns the expected transcript of one of our types: that of the host's type, with the
// deviations.
func (m manner) deviate(t *testing.T, kind string, host, ours *transcript) *transcript {
	t.Helper()
	expected := host.clone()
	for _, d := range m.deviations {
		if d.of != "" && d.of != kind {
			continue
		}
		h, o := host.values[d.what], ours.values[d.what]
		if d.why == "" || h == o || !fits(d.host, h) || !fits(d.ours, o) {
			t.Errorf("the deviation in %q is not as described, or none:\nhost\t%s\nours\t%s", d.what, h, o)
		}
		expected.values[d.what] = o
	}
	return expected
}

// fits compares a text with one that may have … for any.
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

// differences are the observations that are not the same in both.
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
