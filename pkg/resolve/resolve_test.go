package resolve

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// catalogOf parses lines of a short notation into a catalog's content for package p:
//
//	channel: bundle > replaced, replaced by skips ~ range
//
// Every bundle is named as its version. A line "!1.0.0" deprecates a bundle, and "+1.0.0" is a
// bundle in no channel.
func catalogOf(t testing.TB, lines ...string) *fbc.Config {
	t.Helper()
	config := &fbc.Config{Packages: []fbc.Package{{Name: "p", DefaultChannel: "stable"}}}
	channels, bundles := map[string]int{}, map[string]bool{}
	have := func(name string) {
		if !bundles[name] {
			bundles[name] = true
			config.Bundles = append(config.Bundles, bundleOf(name))
		}
	}
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "!"); ok {
			config.Deprecations = append(config.Deprecations, fbc.Deprecations{Package: "p", Entries: []fbc.Deprecation{
				{Reference: fbc.Reference{Schema: fbc.SchemaBundle, Name: name}, Message: "it was withdrawn"}}})
			continue
		}
		if name, ok := strings.CutPrefix(line, "+"); ok {
			have(name)
			continue
		}
		channel, rest, _ := strings.Cut(line, ": ")
		rest, skipRange, _ := strings.Cut(rest, " ~ ")
		name, replaced, _ := strings.Cut(rest, " > ")
		names := strings.Split(replaced, ", ")
		if _, known := channels[channel]; !known {
			channels[channel] = len(config.Channels)
			config.Channels = append(config.Channels, fbc.Channel{Name: channel, Package: "p"})
		}
		entries := &config.Channels[channels[channel]].Entries
		*entries = append(*entries, fbc.Entry{Name: name, Replaces: names[0], Skips: names[1:], SkipRange: skipRange})
		have(name)
	}
	return config
}

func bundleOf(version string) fbc.Bundle {
	return fbc.Bundle{Name: version, Package: "p", Image: "example.com/p:" + version, Properties: []fbc.Property{
		{Type: fbc.PropertyPackage, Value: []byte(fmt.Sprintf(`{"packageName":"p","version":%q}`, version))},
	}}
}

func installed(version string) *Installed { return &Installed{Name: version, Version: version} }

// TestReasons compares the texts of reasons.
func TestReasons(t *testing.T) {
	path := []string{"stable: 1.2.0", "stable: 1.3.0 > 1.2.0", "stable: 1.3.9 > 1.3.0 ~ >=1.2.0 <1.3.9", "stable: 1.4.1 > 1.3.9", "stable: 1.4.2 > 1.4.1"}
	for name, c := range map[string]struct {
		catalog []string
		request Request
		want    string
	}{
		"the way is longer": {path, Request{Version: "1.4.2", Installed: installed("1.2.0")},
			"1.4.2 exists in channel stable but is no successor of 1.2.0: it replaces 1.4.1; go to 1.3.9, 1.4.1 first"},
		"one step": {path, Request{Version: "1.4.2", Installed: installed("1.3.9")},
			"1.4.2 exists in channel stable but is no successor of 1.3.9: it replaces 1.4.1; go to 1.4.1 first"},
		"backwards": {path, Request{Version: "1.3.0", Installed: installed("1.4.1")},
			"1.3.0 exists in channel stable but is no successor of 1.4.1: it replaces 1.2.0; it is lower, and only upgradeConstraintPolicy SelfCertified allows a downgrade"},
		"an island": {[]string{"stable: 2.0.0"}, Request{Installed: installed("1.0.0")},
			"2.0.0 exists in channel stable but is no successor of 1.0.0: it neither replaces nor skips any version; no upgrade path leads there from 1.0.0"},
		"another catalog": {[]string{"stable: 1.0.0", "stable: 1.1.0 > 1.0.0"}, Request{Version: "1.1.0", Installed: &Installed{Name: "vendor.v1.0.0", Version: "1.0.0"}},
			"1.1.0 exists in channel stable but is no successor of bundle vendor.v1.0.0, which catalog c does not have; to switch to this catalog, set upgradeConstraintPolicy to SelfCertified, review what changes, and set it back"},
		"another channel leads there": {[]string{"stable: 1.0.0", "fast: 1.1.0 > 1.0.0", "stable: 1.1.0"}, Request{Channels: []string{"stable"}, Version: "1.1.0", Installed: installed("1.0.0")},
			"1.1.0 exists in channel stable but is no successor of 1.0.0: it neither replaces nor skips any version; channel fast leads there from 1.0.0: add it to channels"},
		"no version": {[]string{"stable: odd"}, Request{Installed: installed("1.0.0")},
			"odd exists in channel stable but is no successor of 1.0.0: it neither replaces nor skips any version; no upgrade path leads there from 1.0.0"},
		"other channels lead there": {[]string{"stable: 1.0.0", "fast: 1.1.0 > 1.0.0", "faster: 1.2.0 > 1.1.0", "stable: 1.2.0"}, Request{Channels: []string{"stable"}, Version: "1.2.0", Installed: installed("1.0.0")},
			"1.2.0 exists in channel stable but is no successor of 1.0.0: it neither replaces nor skips any version; channels fast, faster lead there from 1.0.0: add them to channels"},
		"no such channels": {path, Request{Channels: []string{"beta", "alpha"}},
			"channels alpha, beta have no bundle of the package; it has channel stable"},
		"no such version": {path, Request{Version: "9.x"},
			"none of the 5 versions is in the range: they are from 1.2.0 to 1.4.2"},
		"a pre-release": {[]string{"stable: 1.0.0-rc.1"}, Request{Version: ">=0.9.0"},
			"1.0.0-rc.1 is the only version, and not in the range; pre-releases are in a range only when the range names one, for instance >=1.0.0-0"},
		"no such channel": {path, Request{Channels: []string{"alpha"}},
			"channel alpha has no bundle of the package; it has channel stable"},
		"newest": {path, Request{}, "1.4.2 is the highest version"},
		"all constraints": {path, Request{Version: "1.3.x", Channels: []string{"stable"}, Installed: installed("1.2.0")},
			"1.3.9 is the highest version in the range 1.3.x in channel stable that is installed or succeeds 1.2.0"},
		"higher but not a successor": {path, Request{Installed: installed("1.3.0")},
			"1.3.9 is the highest version that is installed or succeeds 1.3.0; 1.4.2 exists in channel stable but is no successor of 1.3.0: it replaces 1.4.1; go to 1.3.9, 1.4.1 first"},
		"stays": {[]string{"stable: 1.0.0"}, Request{Installed: installed("1.0.0")},
			"it stays: 1.0.0 is the highest version that is installed or succeeds 1.0.0"},
		"higher but deprecated": {append([]string{"!1.4.2"}, path...), Request{},
			"1.4.1 is the highest version; 1.4.2 is deprecated: it was withdrawn"},
		"all deprecated": {[]string{"stable: 1.0.0", "stable: 1.1.0 > 1.0.0", "!1.1.0", "!1.0.0"}, Request{},
			"1.1.0 is the highest version though deprecated, as all other candidates are"},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Package = "p"
			resolution, err := Resolve(c.request, []Catalog{{Name: "c", Config: catalogOf(t, c.catalog...)}})
			got := ""
			if failed := (*Error)(nil); errors.As(err, &failed) {
				got = failed.Reason
			} else if err != nil {
				got = err.Error()
			} else {
				got = resolution.Reason
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestRulesLeftOpen tests rules of upstream that its documentation omits.
func TestRulesLeftOpen(t *testing.T) {
	for name, c := range map[string]struct {
		catalog []string
		request Request
		want    string
	}{
		"an edge of another channel does not count": {[]string{"a: 1.0.0", "a: 1.1.0", "c: 1.1.0 > 1.0.0"}, Request{Channels: []string{"a"}, Installed: installed("1.0.0")}, "1.0.0"},
		"without channels it does":                  {[]string{"a: 1.0.0", "a: 1.1.0", "c: 1.1.0 > 1.0.0"}, Request{Installed: installed("1.0.0")}, "1.1.0"},
		"a bundle in no channel":                    {[]string{"a: 1.0.0", "+2.0.0"}, Request{}, "2.0.0"},
		"no version given takes a pre-release":      {[]string{"a: 1.0.0", "a: 1.1.0-nightly"}, Request{}, "1.1.0-nightly"},
		"* does not":                                {[]string{"a: 1.0.0", "a: 1.1.0-nightly"}, Request{Version: "*"}, "1.0.0"},
		">=1.0.0-0 does":                            {[]string{"a: 1.0.0", "a: 1.1.0-nightly"}, Request{Version: ">=1.0.0-0"}, "1.1.0-nightly"},
		"0.1 is 0.1.x":                              {[]string{"a: 0.1.0", "a: 0.1.9", "a: 0.2.0"}, Request{Version: "0.1"}, "0.1.9"},
		">0.1 begins at 0.2.0":                      {[]string{"a: 0.1.9", "a: 0.2.0"}, Request{Version: ">0.1"}, "0.2.0"},
		"^0.0.1 is this patch":                      {[]string{"a: 0.0.1", "a: 0.0.2"}, Request{Version: "^0.0.1"}, "0.0.1"},
		"metadata in a range is ignored":            {[]string{"a: 1.0.0+1", "a: 1.0.0+2"}, Request{Version: "1.0.0+1"}, "1.0.0+2"},
		"skipRange is of another library":           {[]string{"a: 1.3.0 ~ <1.3.0"}, Request{Installed: installed("1.3.0-rc.1")}, "1.3.0"},
		"skipRange with an exception":               {[]string{"a: 1.3.0 ~ >=1.2.0-alpha <1.3.0 !1.2.0-beta"}, Request{Installed: installed("1.2.0-beta")}, "error"},
		"skipRange that is none":                    {[]string{"a: 1.3.0 > 1.2.0 ~ about one"}, Request{Installed: installed("1.2.0")}, "1.3.0"},
		"a renamed bundle matches ranges":           {[]string{"a: 1.3.0 > 1.2.0 ~ <1.3.0"}, Request{Installed: &Installed{Name: "old.v1.1.0", Version: "1.1.0"}}, "1.3.0"},
		"a successor that is lower":                 {[]string{"a: 1.0.1", "a: 1.0.1-1 > 1.0.1"}, Request{Installed: installed("1.0.1")}, "1.0.1"},
		"a successor that is lower, by range":       {[]string{"a: 1.0.1", "a: 1.0.1-1 > 1.0.1"}, Request{Version: "1.0.1-1", Installed: installed("1.0.1")}, "1.0.1-1"},
		"same version, same release stays":          {[]string{"a: 1.0.0+1", "a: 1.0.0+2"}, Request{Installed: installed("1.0.0+1")}, "1.0.0+1"},
		"a release is higher":                       {[]string{"a: 1.0.0+1", "a: 1.0.0+2 > 1.0.0+1"}, Request{Installed: installed("1.0.0+1")}, "1.0.0+2"},
		"a deprecated successor loses to staying":   {[]string{"a: 1.0.0", "a: 1.1.0 > 1.0.0", "!1.1.0"}, Request{Installed: installed("1.0.0")}, "1.0.0"},
		"an unreadable installed version": {[]string{"a: 1.0.0"}, Request{Installed: installed("one")},
			"error walking catalogs: error finding upgrade edges: failed to get version and release of installed bundle: No Major.Minor.Patch elements found"},
		"it does not matter when forced": {[]string{"a: 1.0.0"}, Request{SelfCertified: true, Installed: installed("one")}, "1.0.0"},
		"an unreadable version alone":    {[]string{"a: one"}, Request{}, `error getting resolved bundle version for bundle "one": No Major.Minor.Patch elements found`},
		"an unreadable version is last":  {[]string{"a: one", "a: 0.0.1"}, Request{}, "0.0.1"},
		"equal versions":                 {[]string{"a: 1.0.0+007", "a: 1.0.0"}, Request{}, "1.0.0"},
		"a selector that is none": {[]string{"a: 1.0.0"}, Request{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}},
			`desired catalog selector is invalid: "Near" is not a valid label selector operator`},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Package = "p"
			resolution, err := Resolve(c.request, []Catalog{{Name: "c", Config: catalogOf(t, c.catalog...)}})
			got := ""
			if failed := (*Error)(nil); errors.As(err, &failed) {
				got = "error"
			} else if err != nil {
				got = err.Error()
			} else {
				got = resolution.Bundle.Name
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestCatalogs: the order of preference among catalogs.
func TestCatalogs(t *testing.T) {
	low, high, gone := catalogOf(t, "a: 1.0.0"), catalogOf(t, "a: 2.0.0"), catalogOf(t, "a: 2.0.0", "!2.0.0")
	for name, c := range map[string]struct {
		catalogs []Catalog
		want     string
	}{
		"priority beats version":         {[]Catalog{{Name: "x", Priority: 1, Config: low}, {Name: "y", Config: high}}, "x 1.0.0"},
		"sound beats priority":           {[]Catalog{{Name: "x", Priority: 9, Config: gone}, {Name: "y", Config: low}}, "y 1.0.0"},
		"deprecated everywhere":          {[]Catalog{{Name: "x", Priority: 9, Config: gone}, {Name: "y", Config: gone}}, "x 2.0.0"},
		"a tie names those of less, too": {[]Catalog{{Name: "x", Config: low}, {Name: "z", Config: high}, {Name: "y", Priority: -1, Config: low}}, `found bundles for package "p" in multiple catalogs with the same priority [x y z]`},
		"one that cannot be read":        {[]Catalog{{Name: "x", Config: low}, {Name: "y", Err: errors.New("not served")}}, `error walking catalogs: error getting package "p" from catalog "y": not served`},
		"one that was switched off":      {[]Catalog{{Name: "x", Config: low}, {Name: "y", Unavailable: true, Err: errors.New("not served")}}, "x 1.0.0"},
		"one without the package":        {[]Catalog{{Name: "x", Config: low}, {Name: "y"}}, "x 1.0.0"},
		"none":                           {nil, `no bundles found for package "p"`},
	} {
		resolution, err := Resolve(Request{Package: "p"}, c.catalogs)
		got := fmt.Sprint(err)
		if err == nil {
			got = resolution.Catalog + " " + resolution.Bundle.Name
		}
		if got != c.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, c.want)
		}
	}
}

// TestDeprecationOfTheWinner: the deprecation comes from the chosen catalog. Upstream returns the
// deprecation of the last catalog it examined.
func TestDeprecationOfTheWinner(t *testing.T) {
	other := catalogOf(t, "a: 1.0.0")
	other.Deprecations = []fbc.Deprecations{{Entries: []fbc.Deprecation{{Reference: fbc.Reference{Schema: fbc.SchemaPackage}, Message: "moved"}}}}
	resolution, err := Resolve(Request{Package: "p"}, []Catalog{{Name: "x", Priority: 1, Config: catalogOf(t, "a: 1.0.0")}, {Name: "y", Config: other}})
	if err != nil || resolution.Deprecation.Package != nil {
		t.Errorf("deprecation of another catalog: %+v, %v", resolution, err)
	}
}

// TestBounds: the list of refused bundles is limited, and their counts are complete.
func TestBounds(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("a: 1.%d.0 > 1.%d.0", i+1, i))
	}
	_, err := Resolve(Request{Package: "p", Version: "1.100.0", Installed: installed("1.0.0")}, []Catalog{{Name: "c", Config: catalogOf(t, lines...)}})
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if len(failed.Refused) != MaxRefused || failed.Counts[OutsideRange] != 99 || failed.Refused[0].Rule != NotSuccessor {
		t.Errorf("%d refused, counts %v, first %+v", len(failed.Refused), failed.Counts, failed.Refused[0])
	}
	if len(failed.Path) != 100 || len(failed.Reason) > 1000 {
		t.Errorf("a path of %d, told in %d bytes: %s", len(failed.Path), len(failed.Reason), failed.Reason)
	}
}

// TestInRange: a range contains exactly the versions that the resolver would choose for it.
func TestInRange(t *testing.T) {
	for _, tc := range []struct {
		version, wanted string
		want            bool
	}{
		{"1.2.0", "", true}, {"1.2.0", "1.2.0", true}, {"1.2.0", ">=1.0.0 <2.0.0", true}, {"1.2.0", "1.x", true}, {"1.2.0", "=1.2", true},
		{"1.2.0", "1.3.x", false}, {"1.2.0", "no range", false}, {"no version", "1.x", false}, {"1.2.0-rc1", "1.x", false}, {"1.2.0-rc1", "1.2.0-rc1", true},
	} {
		if got := InRange(tc.version, tc.wanted); got != tc.want {
			t.Errorf("%q in %q: %t", tc.version, tc.wanted, got)
		}
	}
}
