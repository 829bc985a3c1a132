package lint

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// sound is a catalog without findings; test cases replace parts of it.
const sound = `
{"schema":"olm.package","name":"p","defaultChannel":"stable"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1","replaces":"p.v0"},{"name":"p.v2","replaces":"p.v1","skips":["p.v1.5"],"skipRange":"<2.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1","image":"quay.io/p/p:v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v2","image":"quay.io/p/p:v2","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"},"message":"m"},{"reference":{"schema":"olm.bundle","name":"p.v1"},"message":"m"}]}
`

func TestCheck(t *testing.T) {
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))
	for name, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"sound":                   {"", "", nil},
		"no schema":               {`{"schema":"olm.channel"`, "{\"package\":\"p\",\"x\":1}\n" + `{"schema":"olm.channel"`, []string{"error: package p: the document in line 3 of c has no schema"}},
		"name":                    {`"name":"p","def`, `"name":"P.x","def`, []string{`error: package P.x: the name "P.x" is not allowed: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`, "error: package P.x: the package has no channels", `error: package p: there are documents of the package, and no olm.package named "p"`}},
		"no default channel":      {`"defaultChannel":"stable"`, `"description":""`, []string{"error: package p: the package has no default channel"}},
		"default channel":         {`"defaultChannel":"stable"`, `"defaultChannel":"fast"`, []string{`error: package p: the default channel "fast" does not exist`}},
		"icon":                    {`"defaultChannel"`, `"icon":{"base64data":"` + png + `","mediatype":"image/jpeg"},"defaultChannel"`, []string{"warning: package p: the icon is image/png, and its mediatype image/jpeg"}},
		"icon of text":            {`"defaultChannel"`, `"icon":{"base64data":"aGVsbG8=","mediatype":"image/png"},"defaultChannel"`, []string{"warning: package p: the icon is no picture"}},
		"sound icon":              {`"defaultChannel"`, `"icon":{"base64data":"` + png + `","mediatype":"image/png"},"defaultChannel"`, nil},
		"capitals in a channel":   {`stable`, `Stable`, []string{"warning: package p, channel Stable: a ClusterExtension cannot name this channel: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},
		"no entries":              {`[{"name":"p.v1","replaces":"p.v0"},{"name":"p.v2","replaces":"p.v1","skips":["p.v1.5"],"skipRange":"<2.0.0"}]`, `[]`, []string{"error: package p, bundle p.v1: it is in no channel", "error: package p, bundle p.v2: it is in no channel", "error: package p, channel stable: the channel has no entries"}},
		"two heads":               {`"replaces":"p.v1","skips"`, `"skips"`, []string{"error: package p, channel stable: it has more than one head: nothing replaces or skips p.v1, p.v2"}},
		"no head":                 {`"replaces":"p.v0"`, `"replaces":"p.v2"`, []string{`warning: package p, channel stable: entry "p.v1" replaces "p.v2", which is the higher version: OLM v1 takes this upgrade only when a range excludes 2.0.0`, "error: package p, channel stable: it has no head: every entry is replaced or skipped by another one"}},
		"a circle":                {`[{"name":"p.v1","replaces":"p.v0"}`, `[{"name":"p.v3","replaces":"p.v2"},{"name":"p.v1","replaces":"p.v2"}`, []string{`error: package p, channel stable: entry "p.v3" has no bundle`, `warning: package p, channel stable: entry "p.v1" replaces "p.v2", which is the higher version: OLM v1 takes this upgrade only when a range excludes 2.0.0`, "error: package p, channel stable: following replaces leads in a circle: p.v2 -> p.v1 -> p.v2"}},
		"stranded":                {`[{"name":"p.v1","replaces":"p.v0"}`, `[{"name":"p.v0.5"},{"name":"p.v0.7","replaces":"p.v0.5"},{"name":"p.v0.6","replaces":"p.v0.7","skips":["p.v0.6"]},{"name":"p.v1"}`, []string{`error: package p, channel stable: entry "p.v0.5" has no bundle`, `error: package p, channel stable: entry "p.v0.7" has no bundle`, `error: package p, channel stable: entry "p.v0.6" has no bundle`, `error: package p, channel stable: following replaces from the head "p.v2" does not reach p.v0.5, p.v0.7`}},
		"skipRange":               {`"<2.0.0"`, `"about one"`, []string{`warning: package p, channel stable: entry "p.v2": skipRange "about one" is no range and is ignored: Could not get version from string: "about"`}},
		"entry twice":             {`[{"name":"p.v1","replaces":"p.v0"}`, `[{"name":"p.v1"},{"name":"p.v1","replaces":"p.v0"}`, []string{`error: package p, channel stable: it has two entries "p.v1"`}},
		"entry without bundle":    {`"package":"p","name":"p.v2"`, `"package":"p","name":"p.v3"`, []string{`error: package p, bundle p.v3: it is in no channel`, `error: package p, channel stable: entry "p.v2" has no bundle`}},
		"no version":              {`"version":"2.0.0"`, `"version":"two"`, []string{"error: package p, bundle p.v2: its version cannot be read: No Major.Minor.Patch elements found"}},
		"the same version":        {`"version":"2.0.0"`, `"version":"1.0.0"`, []string{"error: package p: several bundles have version 1.0.0: p.v1, p.v2"}},
		"version of another":      {`"packageName":"p","version":"2.0.0"`, `"packageName":"q","version":"2.0.0"`, []string{`error: package p, bundle p.v2: property olm.package is of package "q", and the bundle of "p"`}},
		"no name":                 {`"package":"p","name":"p.v2",`, `"package":"p",`, []string{"error: package p: a bundle has no name", "error: package p: it is in no channel", `error: package p, channel stable: entry "p.v2" has no bundle`}},
		"no property":             {`{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}`, ``, []string{"error: package p, bundle p.v2: it has 0 properties olm.package, want 1"}},
		"no image":                {`"image":"quay.io/p/p:v2",`, ``, []string{"error: package p, bundle p.v2: it has no image"}},
		"image":                   {`quay.io/p/p:v2`, `oci://quay.io/p`, []string{`error: package p, bundle p.v2: image "oci://quay.io/p" is no reference of an image: invalid reference format`}},
		"related image":           {`"image":"quay.io/p/p:v2"`, `"image":"quay.io/p/p:v2","relatedImages":[{"name":"r","image":"quay.io/p@"}]`, []string{`error: package p, bundle p.v2: related image "r": "quay.io/p@" is no reference of an image: invalid reference format`}},
		"a dependency":            {`"version":"2.0.0"}}`, `"version":"2.0.0"}},{"type":"olm.package.required","value":{"packageName":"q","versionRange":">1"}}`, []string{"warning: package p: OLM v1 cannot install 1 of 2 bundles, for instance p.v2: it has a dependency: package q >1"}},
		"one namespace":           {`"version":"2.0.0"}}`, `"version":"2.0.0"}},{"type":"olm.csv.metadata","value":{"installModes":[{"type":"OwnNamespace","supported":true},{"type":"AllNamespaces","supported":false}]}}`, []string{"warning: package p: OLM v1 cannot install 1 of 2 bundles, for instance p.v2: it cannot watch all namespaces: supports OwnNamespace"}},
		"deprecates what is gone": {`"name":"p.v1"},"message"`, `"name":"p.v9"},"message"`, []string{`error: package p: entry 2 of olm.deprecations is about olm.bundle "p.v9", which does not exist`}},
		"deprecates twice":        {`{"reference":{"schema":"olm.package"},"message":"m"}`, `{"reference":{"schema":"olm.bundle","name":"p.v1"},"message":"m"}`, []string{`error: package p: entry 2 of olm.deprecations is about olm.bundle "p.v1" a second time`}},
		"deprecates with a name":  {`{"schema":"olm.package"}`, `{"schema":"olm.package","name":"p"}`, []string{`error: package p: entry 1 of olm.deprecations names the package "p": a reference to the package has no name`}},
		"deprecates wordlessly":   {`{"schema":"olm.package"},"message":"m"`, `{"schema":"olm.package"},"message":""`, []string{"warning: package p: entry 1 of olm.deprecations has no message: it would show as not deprecated"}},
		"of a package nobody knows": {`{"schema":"olm.deprecations","package":"p"`, `{"schema":"olm.deprecations","package":"q"`, []string{`error: package q: there are documents of the package, and no olm.package named "q"`,
			`error: package q: entry 2 of olm.deprecations is about olm.bundle "p.v1", which does not exist`}},
	} {
		t.Run(name, func(t *testing.T) {
			content := sound
			if c.from != "" {
				if content = strings.ReplaceAll(sound, c.from, c.to); content == sound {
					t.Fatal("the case changes nothing")
				}
			}
			catalog, err := fbc.Load(t.Context(), strings.NewReader(content), "c", fbc.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, finding := range Check(catalog) {
				got = append(got, finding.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestMissing: a version of another channel between two entries of this channel is reported, unless
// an entry upgrades it.
func TestMissing(t *testing.T) {
	const catalog = `
{"schema":"olm.package","name":"p","defaultChannel":"3.x"}
{"schema":"olm.channel","package":"p","name":"3.x","entries":[{"name":"p.v3.2.4"},{"name":"p.v3.3.0","replaces":"p.v3.2.4"}]}
{"schema":"olm.channel","package":"p","name":"3.2.x","entries":[{"name":"p.v3.2.4"},{"name":"p.v3.2.5","replaces":"p.v3.2.4"}]}
{"schema":"olm.bundle","package":"p","name":"p.v3.2.4","image":"quay.io/p/p:v1","properties":[{"type":"olm.package","value":{"packageName":"p","version":"3.2.4"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v3.2.5","image":"quay.io/p/p:v2","properties":[{"type":"olm.package","value":{"packageName":"p","version":"3.2.5"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v3.3.0","image":"quay.io/p/p:v3","properties":[{"type":"olm.package","value":{"packageName":"p","version":"3.3.0"}}]}
`
	for name, c := range map[string]struct {
		reason, from, to string
		missing          bool
	}{
		"missing":       {"no path leads from 3.2.5 to 3.3.0", "", "", true},
		"skipped":       {"3.3.0 skips it", `"replaces":"p.v3.2.4"}]}` + "\n" + `{"schema":"olm.channel","package":"p","name":"3.2.x"`, `"replaces":"p.v3.2.4","skips":["p.v3.2.5"]}]}` + "\n" + `{"schema":"olm.channel","package":"p","name":"3.2.x"`, false},
		"in a range":    {"the range includes it", `{"name":"p.v3.3.0","replaces":"p.v3.2.4"}`, `{"name":"p.v3.3.0","replaces":"p.v3.2.4","skipRange":"<3.3.0"}`, false},
		"a pre-release": {"channels leave them out on purpose", `"version":"3.2.5"`, `"version":"3.2.5-rc.1"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			content := strings.Replace(catalog, c.from, c.to, 1)
			if c.from != "" && content == catalog {
				t.Fatal("the case changes nothing")
			}
			loaded, err := fbc.Load(t.Context(), strings.NewReader(content), "c", fbc.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, finding := range Check(loaded) {
				got = append(got, finding.String())
			}
			var want []string
			if c.missing {
				want = []string{`warning: package p, channel 3.x: "p.v3.2.5" of channel 3.2.x is missing: no path leads from it to "p.v3.3.0"; add it as an entry, or add a skipRange to "p.v3.3.0" that includes 3.2.5`}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
			}
		})
	}
}

// TestFieldCases reads catalogs from user reports; want lists parts of the findings, in order.
func TestFieldCases(t *testing.T) {
	const cases = "../../../../shared/data/field-cases/olm"
	if _, err := os.Stat(cases); err != nil {
		t.Skip("no field cases beside the repository")
	}
	for name, c := range map[string]struct {
		bundles int
		want    []string
		// refused is part of the error of a catalog that cannot be read.
		refused string
	}{
		"19-skipped-chain/catalog.yaml":                     {bundles: 4, want: []string{`following replaces from the head "skipop.v4.0.0" does not reach skipop.v1.0.0`}},
		"20-git-sha-version/catalog.yaml":                   {bundles: 5, want: []string{"hive.v0.1.1036-0152295: its version cannot be read", "is no range and is ignored", "rhods.1.1.1-57: its version cannot be read", "rhods.1.2.0: its version cannot be read"}},
		"21-bundle-missing-in-rolling-channel/catalog.yaml": {bundles: 3, want: []string{`"apic.v3.2.5" of channel 3.2.x is missing`}},
		"27-broken-catalog-update/catalog.yaml":             {refused: "c:254: reading YAML"},
		"29-switch-catalog/community/catalog.yaml":          {bundles: 1},
		"31-mixed-json-yaml/c.yaml":                         {bundles: 1},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.Open(filepath.Join(cases, name))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			loaded, err := fbc.Load(t.Context(), file, "c", fbc.DefaultLimits())
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			bundles := 0
			for _, one := range loaded.Packages {
				bundles += len(loaded.Package(one.Name).Bundles)
			}
			if bundles != c.bundles {
				t.Errorf("got %d bundles, want %d", bundles, c.bundles)
			}
			found := Check(loaded)
			for i := range max(len(found), len(c.want)) {
				if i >= len(found) || i >= len(c.want) || !strings.Contains(found[i].String(), c.want[i]) {
					t.Errorf("got %v, want %q", found, c.want)
					break
				}
			}
		})
	}
}

// TestOperatorHub: opm accepts this catalog, so lint finds no error in it. It needs FULL=1.
func TestOperatorHub(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("set FULL=1: seconds for a catalog in which little can change")
	}
	file, err := os.Open(filepath.Join("../../../../shared/data/catalogs", "operatorhub.jsonl.zst"))
	if os.IsNotExist(err) {
		t.Skip("no shared data")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	catalog, err := fbc.Load(t.Context(), file, "operatorhub", fbc.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	warnings := 0
	for _, finding := range Check(catalog) {
		if finding.Severity == Error {
			t.Error(finding)
		}
		warnings++
	}
	t.Logf("%d warnings", warnings)
}
