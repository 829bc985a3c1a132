package resolve

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

var versionsOfTests = rapid.SampledFrom([]string{"0.9.0", "1.0.0-rc.1", "1.0.0", "1.0.0+1", "1.0.0+2", "1.0.1", "1.1.0", "1.2.0-alpha", "1.2.0", "2.0.0"})

// drawCatalog draws a package of any shape, including cycles and gaps.
func drawCatalog(t *rapid.T, name string) Catalog {
	config := &fbc.Config{Packages: []fbc.Package{{Name: "p", DefaultChannel: "a"}}}
	for _, version := range rapid.SliceOfNDistinct(versionsOfTests, 0, 8, rapid.ID).Draw(t, name+" bundles") {
		config.Bundles = append(config.Bundles, bundleOf(version))
	}
	for _, channel := range []string{"a", "b"} {
		entries := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) fbc.Entry {
			return fbc.Entry{
				Name:     versionsOfTests.Draw(t, "entry"),
				Replaces: rapid.OneOf(rapid.Just(""), versionsOfTests).Draw(t, "replaces"),
				Skips:    rapid.SliceOfN(versionsOfTests, 0, 2).Draw(t, "skips"),
				SkipRange: rapid.SampledFrom([]string{"", "", "<1.0.0", ">=1.0.0 <1.2.0", "nonsense"}).
					Draw(t, "skipRange"),
			}
		}), 0, 6, func(e fbc.Entry) string { return e.Name }).Draw(t, name+" channel "+channel)
		config.Channels = append(config.Channels, fbc.Channel{Name: channel, Package: "p", Entries: entries})
	}
	var gone []fbc.Deprecation
	for _, version := range rapid.SliceOfN(versionsOfTests, 0, 2).Draw(t, name+" deprecated") {
		gone = append(gone, fbc.Deprecation{Reference: fbc.Reference{Schema: fbc.SchemaBundle, Name: version}, Message: "m"})
	}
	config.Deprecations = []fbc.Deprecations{{Package: "p", Entries: gone}}
	return Catalog{Name: name, Priority: rapid.Int32Range(0, 1).Draw(t, name+" priority"), Config: config}
}

func drawRequest(t *rapid.T) Request {
	request := Request{
		Package:       "p",
		Version:       rapid.SampledFrom([]string{"", "", ">=1.0.0", "<1.2.0-0", "1.0.x", "2.0.0", "~1.2.0-0"}).Draw(t, "range"),
		Channels:      rapid.SampledFrom([][]string{nil, nil, {"a"}, {"b", "c"}, {"b", "a"}}).Draw(t, "channels"),
		SelfCertified: rapid.Bool().Draw(t, "forced"),
	}
	if rapid.Bool().Draw(t, "is installed") {
		request.Installed = installed(versionsOfTests.Draw(t, "installed"))
	}
	return request
}

// TestOrder: the answer, the reason and the refused bundles do not depend on the order of catalogs,
// documents and entries.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalogs := []Catalog{drawCatalog(t, "x"), drawCatalog(t, "y")}
		request := drawRequest(t)
		first, firstErr := Resolve(request, catalogs)
		random := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		mixed := shuffled(random, catalogs)
		for i := range mixed {
			config := *mixed[i].Config
			config.Bundles, config.Channels = shuffled(random, config.Bundles), shuffled(random, config.Channels)
			for c := range config.Channels {
				config.Channels[c].Entries = shuffled(random, config.Channels[c].Entries)
			}
			mixed[i].Config = &config
		}
		second, secondErr := Resolve(request, mixed)
		compare := []gocmp.Option{cmpopts.IgnoreUnexported(Refusal{}), gocmp.Comparer(func(a, b fbc.Version) bool { return a.Compare(b) == 0 })}
		if diff := gocmp.Diff(first, second, compare...); diff != "" {
			t.Fatalf("another order, another answer:\n%s", diff)
		}
		if diff := gocmp.Diff(said(firstErr), said(secondErr)); diff != "" {
			t.Fatalf("another order, another error:\n%s", diff)
		}
	})
}

func said(err error) string {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Message + "\n" + failed.Reason + "\n" + strings.Join(failed.Path, " ")
	}
	return fmt.Sprint(err)
}

func shuffled[T any](random *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// TestChosen: the chosen bundle satisfies every constraint, and no better one does.
func TestChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalogs := []Catalog{drawCatalog(t, "x"), drawCatalog(t, "y")}
		request := drawRequest(t)
		resolution, err := Resolve(request, catalogs)
		for _, catalog := range catalogs {
			for i := range catalog.Config.Bundles {
				bundle := &catalog.Config.Bundles[i]
				if err == nil && bundle == resolution.Bundle && !satisfies(request, catalog.Config, bundle) {
					t.Fatalf("%s does not satisfy the request", bundle.Name)
				}
				if failed := (*Error)(nil); errors.As(err, &failed) && strings.Contains(failed.Message, "no bundles found") && satisfies(request, catalog.Config, bundle) {
					t.Fatalf("%s satisfies the request, but %v", bundle.Name, err)
				}
				if err == nil && catalog.Name == resolution.Catalog && satisfies(request, catalog.Config, bundle) && better(catalog.Config, bundle, resolution.Bundle) {
					t.Fatalf("%s is better than %s", bundle.Name, resolution.Bundle.Name)
				}
			}
		}
	})
}

// satisfies is a second, simple implementation of the rules for one bundle.
func satisfies(request Request, config *fbc.Config, bundle *fbc.Bundle) bool {
	version, _ := fbc.ParseVersion(bundle.Name)
	if request.Version != "" {
		allowed, _ := semver.NewConstraint(request.Version)
		parsed, _ := semver.NewVersion(bundle.Name)
		if !allowed.Check(parsed) {
			return false
		}
	}
	in, succeeds := len(request.Channels) == 0, request.SelfCertified || request.Installed == nil
	for _, channel := range config.Channels {
		if len(request.Channels) > 0 && !slices.Contains(request.Channels, channel.Name) {
			continue
		}
		for _, one := range channel.Entries {
			if one.Name != bundle.Name {
				continue
			}
			in = true
			if !succeeds {
				from, _ := fbc.ParseVersion(request.Installed.Version)
				succeeds = one.Replaces == request.Installed.Name || slices.Contains(one.Skips, request.Installed.Name) ||
					one.SkipRange == "<1.0.0" && from.LT(mustParse("1.0.0")) ||
					one.SkipRange == ">=1.0.0 <1.2.0" && from.GTE(mustParse("1.0.0")) && from.LT(mustParse("1.2.0"))
			}
		}
	}
	if !succeeds {
		from, _ := fbc.ParseVersion(request.Installed.Version)
		succeeds = from.Compare(version) == 0
	}
	return in && succeeds
}

func better(config *fbc.Config, a, b *fbc.Bundle) bool {
	gone := func(bundle *fbc.Bundle) bool {
		return slices.ContainsFunc(config.Deprecations[0].Entries, func(d fbc.Deprecation) bool { return d.Reference.Name == bundle.Name })
	}
	versionA, _ := fbc.ParseVersion(a.Name)
	versionB, _ := fbc.ParseVersion(b.Name)
	if gone(a) != gone(b) {
		return gone(b)
	}
	return versionA.Compare(versionB) > 0
}

// TestPath: the resolver takes every step of a path if its version is requested, and no path is
// shorter.
func TestPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalog := drawCatalog(t, "x")
		from, to := versionsOfTests.Draw(t, "from"), versionsOfTests.Draw(t, "to")
		version, _ := fbc.ParseVersion(from)
		g := graph.New(catalog.Config, nil)
		path := g.Path(graph.Installed{Name: from, Version: version}, to)
		at := from
		for _, step := range path {
			next, _ := fbc.ParseVersion(at)
			if _, ok := g.Succeeds(step.Bundle, graph.Installed{Name: at, Version: next}); !ok {
				t.Fatalf("%v: %s is no successor of %s", path, step.Bundle, at)
			}
			at = step.Bundle
		}
		if len(path) > 0 && at != to {
			t.Fatalf("%v leads to %s, not to %s", path, at, to)
		}
		if shortest := steps(catalog.Config, from, to); shortest != len(path) {
			t.Fatalf("%v has %d steps, the shortest path %d", path, len(path), shortest)
		}
	})
}

// steps counts the steps of the shortest path by brute force; 0 if there is none.
func steps(config *fbc.Config, from, to string) int {
	distance := map[string]int{from: 0}
	for round := 1; round <= len(config.Bundles)+1; round++ {
		for i := range config.Bundles {
			name := config.Bundles[i].Name
			if _, known := distance[name]; known {
				continue
			}
			for at, d := range distance {
				one := satisfies(Request{Installed: installed(at)}, &fbc.Config{Channels: config.Channels}, &config.Bundles[i])
				same, _ := fbc.ParseVersion(at)
				version, _ := fbc.ParseVersion(name)
				if d == round-1 && one && same.Compare(version) != 0 {
					distance[name] = round
				}
			}
		}
	}
	return distance[to]
}

func mustParse(text string) blang.Version {
	version, err := fbc.ParseVersion(text)
	if err != nil {
		panic(err)
	}
	return version.Version
}

// FuzzConstraint: any text is parsed as a range or returns an error, without a panic.
func FuzzConstraint(f *testing.F) {
	for _, seed := range []string{"", "1", "=1.2.3", ">=1.0.0-0 <2", "~1.2 || ^3", "1.x.X", "1 - 2", "!1", "=>1,=<2", "v1.2.3", "*", "1.*.*", ">=1.0.0 !1.2.0", "99999999999999999999", "||", ">", "1.2.3+7"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, wanted, skipRange string) {
		config := catalogOf(t, "a: 1.0.0", "a: 1.1.0-rc.1 > 1.0.0")
		config.Channels[0].Entries[0].SkipRange = skipRange
		for _, request := range []Request{{Package: "p", Version: wanted}, {Package: "p", Installed: &Installed{Name: "old", Version: "0.9.0"}}} {
			resolution, err := Resolve(request, []Catalog{{Name: "c", Config: config}})
			if (resolution == nil) == (err == nil) {
				t.Fatalf("%q: %v, %v", wanted, resolution, err)
			}
		}
	})
}
