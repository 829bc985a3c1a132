package order

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/source"
)

// TestLacks: a package must be installed in the same cluster, in the bundle's range, and be
// available. A kind must be served. Hidden extensions are not mentioned.
func TestLacks(t *testing.T) {
	certs := source.Requirement{Package: "certs", VersionRange: ">=1.0.0 <2.0.0"}
	lamp := source.Requirement{Kind: schema.GroupVersionKind{Group: "l.io", Version: "v1", Kind: "Lamp"}}
	installed := func(change func(*Extension)) []Extension {
		one := Extension{Name: "tls", Package: "certs", Version: "1.5.0", Installed: true, Available: true}
		if change != nil {
			change(&one)
		}
		return []Extension{{Name: "shop", Package: "shop", Installed: true}, one}
	}
	const absent = "package certs >=1.0.0 <2.0.0, which no ClusterExtension that its author may get has installed: kubectl penstock install certs -n NAMESPACE --version '>=1.0.0 <2.0.0'"
	for name, tc := range map[string]struct {
		requires source.Requirement
		all      []Extension
		hidden   bool
		want     string
	}{
		"Met":           {certs, installed(nil), true, ""},
		"Absent":        {certs, nil, false, absent},
		"NotInstalled":  {certs, installed(func(e *Extension) { e.Installed = false }), false, absent},
		"AnotherTarget": {certs, installed(func(e *Extension) { e.Target = "far" }), false, absent},
		"Itself":        {certs, installed(func(e *Extension) { e.Name = "shop" }), false, absent},
		"Version":       {certs, installed(func(e *Extension) { e.Version = "2.0.0" }), false, "package certs >=1.0.0 <2.0.0, and ClusterExtension tls has 2.0.0"},
		"VersionHidden": {certs, installed(func(e *Extension) { e.Version = "2.0.0" }), true, absent},
		"NotAvailable":  {certs, installed(func(e *Extension) { e.Available = false }), false, "package certs >=1.0.0 <2.0.0, and ClusterExtension tls, which has it, is not available now"},
		"Prerelease":    {certs, installed(func(e *Extension) { e.Version = "1.6.0-rc1" }), false, ""},
		"AnyVersion":    {source.Requirement{Package: "certs"}, installed(func(e *Extension) { e.Version = "" }), false, ""},
		"BadRange":      {source.Requirement{Package: "certs", VersionRange: "some'; rm"}, installed(nil), true, "package certs some'; rm, which no ClusterExtension that its author may get has installed: kubectl penstock install certs -n NAMESPACE --version 'some; rm'"},
		"Unknown":       {source.Requirement{Package: "none"}, nil, false, "package none, which no ClusterExtension that its author may get has installed, and no package of the catalogs has it"},
		"Served":        {source.Requirement{Kind: schema.GroupVersionKind{Group: "s.io", Version: "v1", Kind: "Served"}}, nil, false, ""},
		"NotServed":     {lamp, nil, false, "kind Lamp of l.io/v1, which the cluster does not serve: kubectl penstock install lamp -n NAMESPACE, or one of lantern"},
		"Constraint":    {source.Requirement{Constraint: `{"any":{}}`}, nil, false, `constraint {"any":{}}, which is not evaluated`},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := Cluster{
				All: tc.all, Shown: func(string) bool { return !tc.hidden },
				Serves: func(kind string) (bool, error) { return kind == "s.io/v1/Served", nil },
				Providers: func(one source.Requirement) []string {
					if one == lamp {
						return []string{"lamp", "lantern"}
					}
					return slices.DeleteFunc([]string{one.Package}, func(name string) bool { return name == "none" })
				},
			}
			got, kinds, err := cluster.Lacks(Extension{Name: "shop"}, []source.Requirement{tc.requires})
			if err != nil || got != tc.want || kinds != (name == "NotServed") {
				t.Errorf("got %q, %t, %v, want %q", got, kinds, err, tc.want)
			}
		})
	}
	unknown := Cluster{Serves: func(string) (bool, error) { return false, errors.New("no answer") }}
	if _, _, err := unknown.Lacks(Extension{}, []source.Requirement{lamp}); err == nil {
		t.Error("a cluster that does not answer serves a kind, or does not")
	}
}
