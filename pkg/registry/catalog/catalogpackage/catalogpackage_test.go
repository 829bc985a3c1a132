package catalogpackage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/catalog/inventory/inventorytest"
)

// lamp has all fields of an entry, two channels (one is deprecated), and a dependency.
const lamp = `
{"schema":"olm.package","name":"lamp","defaultChannel":"stable","description":"Gives light.","icon":{"base64data":"aGk=","mediatype":"image/png"}}
{"schema":"olm.channel","package":"lamp","name":"stable","entries":[{"name":"lamp.v1.0.0","replaces":"lamp.v0.9.0"},{"name":"lamp.v1.1.0","replaces":"lamp.v1.0.0"},{"name":"lamp.v1.2.0","replaces":"lamp.v1.1.0"}]}
{"schema":"olm.channel","package":"lamp","name":"fast","entries":[{"name":"lamp.v2.0.0","skips":["lamp.v1.1.0"],"skipRange":">=1.2.0 <2.0.0"}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1.0.0","image":"quay.io/lamp:1.0","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"lamp.io","version":"v1","kind":"Lamp"}}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1.1.0","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.1.0"}}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1.2.0","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.2.0"}}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v2.0.0","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"2.0.0"}},{"type":"olm.package.required","value":{"packageName":"oil","versionRange":">1.0.0"}}]}
{"schema":"olm.deprecations","package":"lamp","entries":[{"reference":{"schema":"olm.bundle","name":"lamp.v1.0.0"},"message":"leaks"},{"reference":{"schema":"olm.channel","name":"fast"},"message":"too fast"}]}
`

// simple is a package of one version.
func simple(name, version string) string {
	return fmt.Sprintf(`{"schema":"olm.package","name":%[1]q,"defaultChannel":"c"}
{"schema":"olm.channel","package":%[1]q,"name":"c","entries":[{"name":"%[1]s.v%[2]s"}]}
{"schema":"olm.bundle","package":%[1]q,"name":"%[1]s.v%[2]s","properties":[{"type":"olm.package","value":{"packageName":%[1]q,"version":%[2]q}}]}
`, name, version)
}

func with(one inventory.Catalog, priority int32, more map[string]string) inventory.Catalog {
	one.Priority = priority
	marks := map[string]string{}
	for _, some := range []map[string]string{one.Labels, more} {
		for key, value := range some {
			marks[key] = value
		}
	}
	one.Labels = marks
	return one
}

// three returns catalogs of different priorities. Two of them contain lamp.
func three(t *testing.T) *inventory.Inventory {
	return inventorytest.Of(
		with(inventorytest.FromText(t, "hub", lamp+simple("axe", "1.0.0")), 0, map[string]string{"kind": "public"}),
		with(inventorytest.FromText(t, "own", simple("lamp", "3.0.0")+simple("rope", "1.0.0")), 5, map[string]string{"kind": "private"}),
		with(inventorytest.FromText(t, "third", simple("axe", "9.0.0")), 0, map[string]string{"kind": "public"}),
	)
}

func nothing(context.Context) (map[string][]v1alpha1.InstalledVersion, error) { return nil, nil }

func lampsInstalled(versions ...string) Installed {
	return func(context.Context) (map[string][]v1alpha1.InstalledVersion, error) {
		var out []v1alpha1.InstalledVersion
		for i, version := range versions {
			out = append(out, v1alpha1.InstalledVersion{Extension: fmt.Sprintf("lamp-%d", i), Version: version})
		}
		return map[string][]v1alpha1.InstalledVersion{"lamp": out}, nil
	}
}

type warnings []string

func (w *warnings) AddWarning(_, message string) { *w = append(*w, message) }

func listed(t *testing.T, r *REST, options *metainternalversion.ListOptions) *v1alpha1.CatalogPackageList {
	t.Helper()
	found, err := r.List(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return found.(*v1alpha1.CatalogPackageList)
}

// rows returns packages as "name of catalog latest".
func rows(list *v1alpha1.CatalogPackageList) []string {
	var out []string
	for _, one := range list.Items {
		out = append(out, one.Name+" of "+one.Catalog+" "+one.Latest)
	}
	return out
}

func selectedBy(t *testing.T, label, field string) *metainternalversion.ListOptions {
	t.Helper()
	options := &metainternalversion.ListOptions{}
	var err error
	if options.LabelSelector, err = labels.Parse(label); err != nil {
		t.Fatal(err)
	}
	if options.FieldSelector, err = fields.ParseSelector(field); err != nil {
		t.Fatal(err)
	}
	return options
}

func TestList(t *testing.T) {
	packages := NewStorage(three(t), nothing).Package
	for name, c := range map[string]struct {
		reason, label, field string
		want                 []string
	}{
		"all":               {"one row a package; priority first, then the first by name", "", "", []string{"axe of hub 1.0.0", "lamp of own 3.0.0", "rope of own 1.0.0"}},
		"catalog by label":  {"its packages, also where another one counts otherwise", "catalog=hub", "", []string{"axe of hub 1.0.0", "lamp of hub 2.0.0"}},
		"label of catalogs": {"of those the one that counts", "kind=public", "", []string{"axe of hub 1.0.0", "lamp of hub 2.0.0"}},
		"not this catalog":  {"another one", "catalog!=own", "", []string{"axe of hub 1.0.0", "lamp of hub 2.0.0"}},
		"upstream's label":  {"as a selector of an extension has it", "olm.operatorframework.io/metadata.name in (third)", "", []string{"axe of third 9.0.0"}},
		"field catalog":     {"like the label", "", "catalog=third", []string{"axe of third 9.0.0"}},
		"not field catalog": {"like the label", "", "catalog!=hub", []string{"axe of third 9.0.0", "lamp of own 3.0.0", "rope of own 1.0.0"}},
		"by name":           {"one", "", "metadata.name=lamp", []string{"lamp of own 3.0.0"}},
		"not a name":        {"all others", "", "metadata.name!=lamp", []string{"axe of hub 1.0.0", "rope of own 1.0.0"}},
		"unknown name":      {"none", "", "metadata.name=none", nil},
		"latest":            {"of what counts: hub's lamp does not", "", "latest=2.0.0", nil},
		"both":              {"of what the label chooses", "catalog=hub", "latest=2.0.0,deprecated=false", []string{"lamp of hub 2.0.0"}},
		"deprecated":        {"none is", "", "deprecated=true", nil},
		"nothing":           {"", "kind=other", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, rows(listed(t, packages, selectedBy(t, c.label, c.field)))); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
			}
		})
	}
}

// TestGet: the answer has all facts about a package, and the other catalogs that have it.
func TestGet(t *testing.T) {
	catalogs := three(t)
	packages := NewStorage(catalogs, lampsInstalled("1.1.0")).Package
	listing := listed(t, packages, selectedBy(t, "catalog=hub", "metadata.name=lamp"))
	want := v1alpha1.CatalogPackage{
		ObjectMeta: metav1.ObjectMeta{
			Name: "lamp", ResourceVersion: catalogs.Snapshot().Version().String(),
			Labels: map[string]string{"catalog": "hub", "kind": "public", "olm.operatorframework.io/metadata.name": "hub"},
		},
		Catalog:     "hub",
		Catalogs:    []v1alpha1.PackageCatalog{{Name: "own", Priority: 5, Latest: "3.0.0"}, {Name: "hub", Latest: "2.0.0"}},
		Description: "Gives light.", DefaultChannel: "stable", Latest: "2.0.0", VersionCount: 4,
		Channels: []v1alpha1.PackageChannel{{Name: "fast", Latest: "2.0.0", Deprecation: &v1alpha1.Deprecation{Message: "too fast"}}, {Name: "stable", Latest: "1.2.0"}},
		Versions: []v1alpha1.PackageVersion{
			{Version: "2.0.0", Channels: []string{"fast"}, Unsupported: "has a dependency: package oil >1.0.0"},
			{Version: "1.2.0", Channels: []string{"stable"}},
			{Version: "1.1.0", Channels: []string{"stable"}},
			{Version: "1.0.0", Channels: []string{"stable"}, Deprecation: &v1alpha1.Deprecation{Message: "leaks"}},
		},
		Kinds:     []v1alpha1.PackageKind{{Group: "lamp.io", Version: "v1", Kind: "Lamp"}},
		Installed: []v1alpha1.InstalledVersion{{Extension: "lamp-0", Version: "1.1.0"}},
	}
	if diff := cmp.Diff([]v1alpha1.CatalogPackage{want}, listing.Items); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, err := packages.Get(t.Context(), "lamp", nil); err != nil || got.(*v1alpha1.CatalogPackage).Catalog != "own" {
		t.Errorf("by name: %+v, %v", got, err)
	}
	if _, err := packages.Get(t.Context(), "none", nil); !apierrors.IsNotFound(err) {
		t.Errorf("a package of nobody: %v", err)
	}
}

// TestPages: all pages show the same version of the catalogs. When it is forgotten, the continue
// token expires.
func TestPages(t *testing.T) {
	catalogs := three(t)
	packages := NewStorage(catalogs, nothing).Package
	first := listed(t, packages, &metainternalversion.ListOptions{Limit: 2})
	if diff := cmp.Diff([]string{"axe of hub 1.0.0", "lamp of own 3.0.0"}, rows(first)); diff != "" || first.RemainingItemCount == nil || *first.RemainingItemCount != 1 {
		t.Errorf("first page: %s, remaining %v", diff, first.RemainingItemCount)
	}
	catalogs.Remove("own")
	second := listed(t, packages, &metainternalversion.ListOptions{Limit: 2, Continue: first.Continue})
	if diff := cmp.Diff([]string{"rope of own 1.0.0"}, rows(second)); diff != "" || second.Continue != "" || second.ResourceVersion != first.ResourceVersion {
		t.Errorf("second page: %s, goes on with %q", diff, second.Continue)
	}
	filtered := selectedBy(t, "", "metadata.name!=axe")
	filtered.Limit = 1
	if page := listed(t, packages, filtered); page.RemainingItemCount != nil {
		t.Errorf("how many match is not known: %d", *page.RemainingItemCount)
	}
	catalogs.Remove("hub")
	catalogs.Remove("third")
	_, err := packages.List(t.Context(), &metainternalversion.ListOptions{Limit: 2, Continue: first.Continue})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("after three changes: %v", err)
	}
	for name, options := range map[string]*metainternalversion.ListOptions{
		"nonsense":     {Continue: "nonsense"},
		"with version": {Continue: first.Continue, ResourceVersion: first.ResourceVersion},
		"path":         {Continue: "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi8ifQ"},
	} {
		if _, err := packages.List(t.Context(), options); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVersionOfList checks the accepted values of resourceVersion.
func TestVersionOfList(t *testing.T) {
	catalogs := three(t)
	packages := NewStorage(catalogs, nothing).Package
	before := catalogs.Snapshot().Version()
	catalogs.Remove("own")
	now := catalogs.Snapshot().Version()
	for name, c := range map[string]struct {
		version string
		exact   bool
		is      func(error) bool
		want    inventory.Version
	}{
		"any":           {version: "0", want: now},
		"not older":     {version: before.String(), want: now},
		"exactly":       {version: before.String(), exact: true, want: before},
		"exactly now":   {version: now.String(), exact: true, want: now},
		"forgotten":     {version: "7", exact: true, is: apierrors.IsResourceExpired},
		"future":        {version: (now + 1<<40 + 1).String(), is: storage.IsTooLargeResourceVersion},
		"exact, future": {version: (now + 1<<40 + 1).String(), exact: true, is: storage.IsTooLargeResourceVersion},
		"nonsense":      {version: "nonsense", is: apierrors.IsBadRequest},
	} {
		options := &metainternalversion.ListOptions{ResourceVersion: c.version}
		if c.exact {
			options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
		}
		found, err := packages.List(t.Context(), options)
		switch {
		case c.is != nil:
			if !c.is(err) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case found.(*v1alpha1.CatalogPackageList).ResourceVersion != c.want.String():
			t.Errorf("%s: version %s, want %s", name, found.(*v1alpha1.CatalogPackageList).ResourceVersion, c.want)
		}
	}
}

// TestNotKnownYet: before the catalogs are listed, the answer is an error and not an empty list.
// The error names unreadable catalogs.
func TestNotKnownYet(t *testing.T) {
	catalogs := inventory.New(clock.RealClock{})
	s := NewStorage(catalogs, nothing)
	options := &v1alpha1.CatalogPackageOptions{}
	for name, ask := range map[string]func() error{
		"list":     func() error { _, err := s.Package.List(t.Context(), nil); return err },
		"get":      func() error { _, err := s.Package.Get(t.Context(), "lamp", nil); return err },
		"watch":    func() error { _, err := s.Package.Watch(t.Context(), nil); return err },
		"versions": func() error { _, err := s.Versions.Get(t.Context(), "lamp", options); return err },
		"icon":     func() error { _, err := s.Icon.Get(t.Context(), "lamp", options); return err },
		"page": func() error {
			_, err := s.Package.List(t.Context(), &metainternalversion.ListOptions{Continue: "x"})
			return err
		},
	} {
		if err := ask(); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	catalogs.Put(inventory.Catalog{Name: "waits"})
	catalogs.Put(inventory.Catalog{Name: "gone", Err: errors.New("no such \x1b[2Jimage")})
	catalogs.Put(inventory.Catalog{Name: "off", Unavailable: true})
	catalogs.Put(inventorytest.FromText(t, "odd", simple("../up", "1.0.0")))
	catalogs.MarkComplete()
	var told warnings
	if _, err := s.Package.List(warning.WithWarningRecorder(t.Context(), &told), nil); err != nil {
		t.Fatal(err)
	}
	want := warnings{"catalog gone cannot be read: no such [2Jimage", "catalog waits has not been read yet", "1 package is left out: its name is not a valid object name"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := s.Package.Get(t.Context(), "lamp", nil); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "catalog gone cannot be read") {
		t.Errorf("it may be in the catalog that cannot be read: %v", err)
	}
}

// TestInstalledUnknown: after an error about installed versions, the answer does not claim that
// nothing is installed.
func TestInstalledUnknown(t *testing.T) {
	var told warnings
	packages := NewStorage(three(t), func(context.Context) (map[string][]v1alpha1.InstalledVersion, error) {
		return nil, errors.New("no answer")
	}).Package
	found, err := packages.Get(warning.WithWarningRecorder(t.Context(), &told), "lamp", nil)
	if err != nil || found.(*v1alpha1.CatalogPackage).Installed != nil || len(told) != 1 || told[0] != "installed versions are left out: no answer" {
		t.Errorf("%+v, %v, warnings %q", found, err, told)
	}
}

func event(t *testing.T, w watch.Interface) string {
	t.Helper()
	select {
	case got, open := <-w.ResultChan():
		if !open {
			return "end"
		}
		one := got.Object.(*v1alpha1.CatalogPackage)
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", got.Type, one.Name, one.Latest))
	case <-time.After(time.Minute):
		t.Fatal("the watch says nothing")
		return ""
	}
}

func expect(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for _, one := range want {
		if got := event(t, w); got != one {
			t.Errorf("got %q, want %q", got, one)
		}
	}
}

func watched(t *testing.T, r *REST, options *metainternalversion.ListOptions) watch.Interface {
	t.Helper()
	w, err := r.Watch(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func TestWatch(t *testing.T) {
	catalogs := three(t)
	packages := NewStorage(catalogs, nothing).Package
	start := catalogs.Snapshot().Version().String()
	yes, no := true, false
	all := watched(t, packages, &metainternalversion.ListOptions{AllowWatchBookmarks: true})
	fromNow := watched(t, packages, &metainternalversion.ListOptions{ResourceVersion: start})
	quiet := watched(t, packages, &metainternalversion.ListOptions{SendInitialEvents: &no})
	onlyHub := selectedBy(t, "catalog=hub", "")
	onlyHub.ResourceVersion, onlyHub.AllowWatchBookmarks = start, true
	ofHub := watched(t, packages, onlyHub)
	listing := watched(t, packages, &metainternalversion.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersion: start, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	expect(t, all, "ADDED axe 1.0.0", "ADDED lamp 3.0.0", "ADDED rope 1.0.0")
	expect(t, listing, "ADDED axe 1.0.0", "ADDED lamp 3.0.0", "ADDED rope 1.0.0")
	got := <-listing.ResultChan()
	if mark := got.Object.(*v1alpha1.CatalogPackage); got.Type != watch.Bookmark || mark.ResourceVersion != start || mark.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("all that is there ends with %+v", got)
	}

	// The content of own changes: lamp changes, rope is removed, and axe is added.
	catalogs.Put(with(inventorytest.FromText(t, "own", simple("lamp", "3.1.0")+simple("axe", "5.0.0")), 5, nil))
	for _, w := range []watch.Interface{all, fromNow, quiet, listing} {
		expect(t, w, "MODIFIED axe 5.0.0", "MODIFIED lamp 3.1.0", "DELETED rope 1.0.0")
	}
	// A package names the other catalogs that contain it.
	expect(t, ofHub, "MODIFIED axe 1.0.0", "MODIFIED lamp 2.0.0")
	before := catalogs.Snapshot().Version().String()

	catalogs.Put(with(inventorytest.FromText(t, "later", simple("new", "1.0.0")), -1, nil))
	for _, w := range []watch.Interface{all, fromNow, quiet, listing} {
		expect(t, w, "ADDED new 1.0.0")
	}
	// Without an event the client gets a bookmark, so that its version stays known.
	expect(t, ofHub, "BOOKMARK")
	again := watched(t, packages, &metainternalversion.ListOptions{ResourceVersion: before})
	expect(t, again, "ADDED new 1.0.0")

	all.Stop()
	expect(t, all, "end")
	for range 3 {
		catalogs.Put(with(inventorytest.FromText(t, "later", simple("new", "1.0.0")), int32(time.Now().UnixNano()%1000+1), nil))
	}
	for _, version := range []string{"7", before, "9223372036854775807"} {
		if _, err := packages.Watch(t.Context(), &metainternalversion.ListOptions{ResourceVersion: version}); !apierrors.IsResourceExpired(err) {
			t.Errorf("from version %s: %v", version, err)
		}
	}
	if _, err := packages.Watch(t.Context(), &metainternalversion.ListOptions{ResourceVersion: "nonsense"}); !apierrors.IsBadRequest(err) {
		t.Errorf("from nonsense: %v", err)
	}
}

// TestWatchOfAnotherReplica: a client that lists from one replica and watches another misses no
// event.
func TestWatchOfAnotherReplica(t *testing.T) {
	here, there := three(t), three(t)
	version := listed(t, NewStorage(here, nothing).Package, nil).ResourceVersion
	w := watched(t, NewStorage(there, nothing).Package, &metainternalversion.ListOptions{ResourceVersion: version})
	there.Remove("own")
	expect(t, w, "MODIFIED lamp 2.0.0", "DELETED rope 1.0.0")
}

func query(catalogName, from, to string, channels ...string) *v1alpha1.CatalogPackageOptions {
	return &v1alpha1.CatalogPackageOptions{Catalog: catalogName, Channel: channels, From: from, To: to}
}

// printed returns a table as text, including wide columns.
func printed(t *testing.T, printer interface {
	ConvertToTable(context.Context, runtime.Object, runtime.Object) (*metav1.Table, error)
}, object runtime.Object) string {
	t.Helper()
	table, err := printer.ConvertToTable(t.Context(), object, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, column := range table.ColumnDefinitions {
		fmt.Fprintf(&b, "%s%s", map[bool]string{true: "", false: " | "}[i == 0], column.Name)
	}
	for _, row := range table.Rows {
		b.WriteByte('\n')
		for i, cell := range row.Cells {
			fmt.Fprintf(&b, "%s%v", map[bool]string{true: "", false: " | "}[i == 0], cell)
		}
	}
	return b.String()
}

func TestTables(t *testing.T) {
	s := NewStorage(three(t), lampsInstalled("1.0.0"))
	versions, err := s.Versions.Get(t.Context(), "lamp", query("hub", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	upgrades, err := s.Graph.Get(t.Context(), "lamp", query("hub", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ got, want string }{
		"packages": {printed(t, s.Package, listed(t, s.Package, nil)), `Name | Catalog | Channels | Default | Latest | Installed | Description | Versions | Deprecated | Other catalogs
axe | hub | c | c | 1.0.0 |  |  | 1 |  | third
lamp | own | c | c | 3.0.0 | 1.0.0 |  | 1 |  | hub
rope | own | c | c | 1.0.0 |  |  | 1 |  | `},
		"versions": {printed(t, s.Versions, versions), `Version | Channels | Replaces | Skips | Deprecated | Supported | Bundle | Image
2.0.0 | fast |  | 1.1.0,>=1.2.0 <2.0.0 |  | false: has a dependency: package oil >1.0.0 | lamp.v2.0.0 | 
1.2.0 | stable | 1.1.0 |  |  | true | lamp.v1.2.0 | 
1.1.0 | stable | 1.0.0 |  |  | true | lamp.v1.1.0 | 
1.0.0 | stable | lamp.v0.9.0 |  | leaks | true | lamp.v1.0.0 | quay.io/lamp:1.0`},
		"graph": {printed(t, s.Graph, upgrades), `Channel | Version | Upgrade of | Path | Deprecated
fast | 2.0.0 | skips 1.1.0; skips the range >=1.2.0 <2.0.0 | 1.1.0, 2.0.0 | 
stable (default) | 1.2.0 | replaces 1.1.0 | 1.1.0, 1.2.0 | 
stable (default) | 1.1.0 | replaces 1.0.0 | 1.1.0 | 
stable (default) | 1.0.0 | replaces lamp.v0.9.0 | (installed) | leaks`},
	} {
		if diff := cmp.Diff(strings.Split(c.want, "\n"), strings.Split(c.got, "\n")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestGraph(t *testing.T) {
	read := func(installed Installed, asked *v1alpha1.CatalogPackageOptions) *v1alpha1.CatalogPackageGraph {
		t.Helper()
		found, err := NewStorage(three(t), installed).Graph.Get(t.Context(), "lamp", asked)
		if err != nil {
			t.Fatal(err)
		}
		return found.(*v1alpha1.CatalogPackageGraph)
	}
	got := read(lampsInstalled("1.0.0", "0.5.0"), query("hub", "", "1.1.0"))
	wantUpgrades := []v1alpha1.GraphUpgrade{
		{From: "1.1.0", To: "2.0.0", Channel: "fast", By: "skips"}, {From: "1.2.0", To: "2.0.0", Channel: "fast", By: "skipRange"},
		{From: "lamp.v0.9.0", To: "1.0.0", Channel: "stable", By: "replaces"}, {From: "1.0.0", To: "1.1.0", Channel: "stable", By: "replaces"}, {From: "1.1.0", To: "1.2.0", Channel: "stable", By: "replaces"},
	}
	if diff := cmp.Diff(wantUpgrades, got.Upgrades); diff != "" {
		t.Errorf("upgrades: (-want +got)\n%s", diff)
	}
	wantPaths := []v1alpha1.GraphPath{
		{From: "1.0.0", To: "1.1.0", Versions: []string{"1.1.0"}}, {From: "1.0.0", To: "2.0.0", Versions: []string{"1.1.0", "2.0.0"}},
		{From: "1.0.0", To: "1.2.0", Versions: []string{"1.1.0", "1.2.0"}},
	}
	if diff := cmp.Diff(wantPaths, got.Paths); diff != "" {
		t.Errorf("paths: (-want +got)\n%s", diff)
	}
	if len(got.Installed) != 2 || got.DefaultChannel != "stable" || got.Entries[1].Path != "1.0.0: 1.1.0, 1.2.0" {
		t.Errorf("of two that are installed: %+v", got)
	}
	asked := read(lampsInstalled("1.0.0"), query("hub", "1.2.0", "", "fast"))
	if diff := cmp.Diff([]v1alpha1.GraphPath{{From: "1.2.0", To: "2.0.0", Versions: []string{"2.0.0"}}}, asked.Paths); diff != "" || len(asked.Entries) != 1 {
		t.Errorf("from what is asked for, in one channel: %d entries\n%s", len(asked.Entries), diff)
	}
	if none := read(nothing, query("hub", "", "")); none.Paths != nil || none.Entries[0].Path != "" {
		t.Errorf("nothing is installed: %+v", none.Paths)
	}
	// Ranges still match a version that was removed from the catalog.
	if left := read(lampsInstalled("1.5.0"), query("hub", "", "")); len(left.Paths) != 1 || left.Paths[0].To != "2.0.0" {
		t.Errorf("from a version that is not in the catalog any more: %+v", left.Paths)
	}
}

// TestBadQueries: a query for something that does not exist gets an error with the existing values.
func TestBadQueries(t *testing.T) {
	s := NewStorage(three(t), nothing)
	for name, c := range map[string]struct {
		get  func(context.Context, string, runtime.Object) (runtime.Object, error)
		ask  *v1alpha1.CatalogPackageOptions
		want string
	}{
		"catalog":  {s.Versions.Get, query("third", "", ""), `catalog="third": this catalog does not have package lamp: want one of own, hub`},
		"channel":  {s.Versions.Get, query("hub", "", "", "slow"), `channel="slow": package lamp of catalog hub has no such channel: want one of fast,stable`},
		"from":     {s.Graph.Get, query("hub", "7.0.0", ""), `from="7.0.0": the package has no such version or bundle`},
		"to":       {s.Graph.Get, query("hub", "", "7.0.0"), `to="7.0.0": the package has no such version or bundle`},
		"no graph": {s.Versions.Get, query("hub", "1.0.0", ""), `from="1.0.0": this subresource has no such parameter: want one of catalog, channel`},
		"no range": {s.Graph.Get, &v1alpha1.CatalogPackageOptions{Version: []string{"1.x"}}, `version="1.x": this subresource has no such parameter: want one of catalog, channel, from, to`},
	} {
		if _, err := c.get(t.Context(), "lamp", c.ask); !apierrors.IsBadRequest(err) || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for _, get := range []func(context.Context, string, runtime.Object) (runtime.Object, error){s.Versions.Get, s.Graph.Get, s.Icon.Get} {
		if _, err := get(t.Context(), "none", query("", "", "")); !apierrors.IsNotFound(err) {
			t.Errorf("a package of nobody: %v", err)
		}
	}
}

func TestIcon(t *testing.T) {
	s := NewStorage(three(t), nothing)
	found, err := s.Icon.Get(t.Context(), "lamp", query("hub", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	if icon := found.(*v1alpha1.CatalogPackageIcon); string(icon.Data) != "hi" || icon.MediaType != "image/png" || icon.Catalog != "hub" {
		t.Errorf("%+v", icon)
	}
	_, err = s.Icon.Get(t.Context(), "lamp", query("", "", ""))
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) || status.Status().Code != http.StatusNotFound {
		t.Errorf("the catalog that counts has none: %v", err)
	}
}

// TestHostile: the texts of a catalog are printed on one line and cut.
func TestHostile(t *testing.T) {
	nasty := `x\u001b[2J\u202e\n` + strings.Repeat("y", 5000)
	content := strings.NewReplacer("NASTY", nasty).Replace(`{"schema":"olm.package","name":"p","defaultChannel":"NASTY","description":"NASTY"}
{"schema":"olm.channel","package":"p","name":"NASTY","entries":[{"name":"NASTY","replaces":"NASTY","skips":["NASTY"],"skipRange":"NASTY"}]}
{"schema":"olm.bundle","package":"p","name":"NASTY","image":"NASTY","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"NASTY","version":"NASTY","kind":"NASTY"}},{"type":"olm.package.required","value":{"packageName":"NASTY"}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"},"message":"NASTY"},{"reference":{"schema":"olm.bundle","name":"NASTY"},"message":"NASTY"}]}`)
	s := NewStorage(inventorytest.Of(inventorytest.FromText(t, "c", content)), lampsInstalled())
	one, err := s.Package.Get(t.Context(), "p", nil)
	if err != nil {
		t.Fatal(err)
	}
	versions, err := s.Versions.Get(t.Context(), "p", query("", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	upgrades, err := s.Graph.Get(t.Context(), "p", query("", "1.0.0", ""))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"package": printed(t, s.Package, one), "versions": printed(t, s.Versions, versions), "graph": printed(t, s.Graph, upgrades)} {
		if strings.ContainsAny(text, "\x1b\u202e") || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: the table has other lines, or controls the terminal: %q", name, text)
		}
		if len(text) > 6000 {
			t.Errorf("%s: the table has %d bytes", name, len(text))
		}
	}
	for name, object := range map[string]any{"package": one, "versions": versions, "graph": upgrades} {
		if text := fmt.Sprintf("%+v", object); strings.ContainsAny(text, "\x1b\u202e\n") || len(text) > 20000 {
			t.Errorf("%s: %d bytes: %.300q", name, len(text), text)
		}
	}
}

// TestTooLarge: a graph that would take minutes is refused, but one channel of it is served.
func TestTooLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"schema":"olm.channel","package":"p","name":"small","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.channel","package":"p","name":"large","entries":[`)
	const bundles = 1200
	for n := range bundles {
		fmt.Fprintf(&b, `%s{"name":"p.v1.%d.0","skipRange":">=0.0.0 <1.%d.0 || >=0.0.0 <1.%d.0 || >5.0.0"}`, map[bool]string{true: "", false: ","}[n == 0], n, n, n)
	}
	b.WriteString("]}\n")
	for n := range bundles {
		fmt.Fprintf(&b, `{"schema":"olm.bundle","package":"p","name":"p.v1.%d.0","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.%d.0"}}]}`+"\n", n, n)
	}
	s := NewStorage(inventorytest.Of(inventorytest.FromText(t, "c", b.String())), nothing)
	if _, err := s.Graph.Get(t.Context(), "p", query("", "", "")); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("%v", err)
	}
	found, err := s.Graph.Get(t.Context(), "p", query("", "", "", "small"))
	if err != nil || len(found.(*v1alpha1.CatalogPackageGraph).Entries) != 1 {
		t.Errorf("one channel: %+v, %v", found, err)
	}
	versions, err := s.Versions.Get(t.Context(), "p", query("", "", ""))
	if err != nil || len(versions.(*v1alpha1.CatalogPackageVersions).Versions) != bundles {
		t.Errorf("versions: %v", err)
	}
	one, err := s.Package.Get(t.Context(), "p", nil)
	if err != nil || len(one.(*v1alpha1.CatalogPackage).Versions) != 100 || one.(*v1alpha1.CatalogPackage).VersionCount != bundles {
		t.Errorf("the package itself has bounds: %v", err)
	}
}

// TestOperatorHub: all packages of a real catalog can be read and printed.
func TestOperatorHub(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("FULL=1 reads all of OperatorHub's catalog")
	}
	s := NewStorage(inventorytest.Of(inventorytest.FromFile(t, "hub", "../../../../../shared/data/catalogs/operatorhub.jsonl.zst")), nothing)
	list := listed(t, s.Package, nil)
	if len(list.Items) < 300 {
		t.Errorf("%d packages", len(list.Items))
	}
	printed(t, s.Package, list)
	largest := 0
	for _, one := range list.Items {
		versions, err := s.Versions.Get(t.Context(), one.Name, query("", "", ""))
		if err != nil {
			t.Fatal(err)
		}
		if found := versions.(*v1alpha1.CatalogPackageVersions); found.Omitted > 0 || len(found.Versions) != int(one.VersionCount) {
			t.Errorf("%s: %d versions of %d", one.Name, len(found.Versions), one.VersionCount)
		}
		upgrades, err := s.Graph.Get(t.Context(), one.Name, query("", one.Versions[len(one.Versions)-1].Version, ""))
		if err != nil {
			t.Fatal(err)
		}
		found := upgrades.(*v1alpha1.CatalogPackageGraph)
		if found.Omitted > 0 {
			t.Errorf("%s: the graph leaves out %d upgrades", one.Name, found.Omitted)
		}
		largest = max(largest, len(found.Upgrades))
	}
	t.Logf("the largest graph has %d upgrades", largest)
}

// BenchmarkTable lists 312 packages as a table.
func BenchmarkTable(b *testing.B) {
	file := "../../../../../shared/data/catalogs/operatorhub.jsonl.zst"
	if _, err := os.Stat(file); err != nil {
		b.Skip("no shared data")
	}
	packages := NewStorage(inventorytest.Of(inventorytest.FromFile(b, "hub", file)), nothing).Package
	for b.Loop() {
		found, err := packages.List(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		table, err := packages.ConvertToTable(b.Context(), found, nil)
		if err != nil {
			b.Fatal(err)
		}
		if len(table.Rows) < 300 {
			b.Fatalf("%d rows", len(table.Rows))
		}
	}
}
