package install

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// TestNameTaken: a name that Penstock would refuse as NameTaken is found before the request.
func TestNameTaken(t *testing.T) {
	controller := true
	of := func(chain string, annotations map[string]string, owners ...metav1.OwnerReference) []v1alpha1.ClusterExtensionRevision {
		one := v1alpha1.ClusterExtensionRevision{}
		one.Name, one.Labels, one.Annotations, one.OwnerReferences = chain+"-7", map[string]string{v1alpha1.ChainLabel: chain}, annotations, owners
		return []v1alpha1.ClusterExtensionRevision{one}
	}
	owner := func(kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: kind, Name: name, Controller: &controller}
	}
	for name, tc := range map[string]struct {
		reason    string
		revisions []v1alpha1.ClusterExtensionRevision
		manual    bool
		want      string
	}{
		"none":     {"the name is free", nil, true, ""},
		"other":    {"another name is none of its", of("light", nil), true, ""},
		"theirs":   {"nothing is proposed into a chain that somebody else has begun", of("buoy", nil), true, "no ClusterExtension has made it"},
		"at once":  {"their author takes them over", of("buoy", nil), false, ""},
		"proposed": {"nobody has let it go on", of("buoy", map[string]string{extension.ProposedAnnotation: "true"}), true, ""},
		"owned":    {"somebody else has them", of("buoy", nil, owner("ChartKind", "x")), false, "belongs to ChartKind x"},
		"gone":     {"the collector takes them", of("buoy", nil, owner("ClusterExtension", "buoy")), false, "wait until it is deleted"},
	} {
		approval := extension.ApprovalReviewed
		if tc.manual {
			approval = extension.ApprovalManual
		}
		got := Request{Package: "buoy", Name: "buoy", Namespace: "sea", Approval: approval}.NameTaken(tc.revisions)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s (%s): %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestHindered: it finds a package that another extension has, and a version that cannot be
// installed.
func TestHindered(t *testing.T) {
	offered := &catalogv1alpha1.CatalogPackage{Versions: []catalogv1alpha1.PackageVersion{{Version: "1.0.0", Unsupported: "it has dependencies"}, {Version: "1.1.0"}}}
	request := Request{Package: "buoy", Name: "buoy"}
	for version, want := range map[string]string{"": "", "1.1.0": "", "1.0.0": "it has dependencies"} {
		if got := request.Hindered(offered, version); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
	// Flags of install solve these hindrances.
	own := &catalogv1alpha1.CatalogPackage{Versions: []catalogv1alpha1.PackageVersion{{Version: "2.0.0", Unsupported: "has a dependency: package pump >=1; cannot watch all namespaces: supports OwnNamespace"}}}
	request.Namespace = "sea"
	for _, step := range []struct {
		want   string
		answer func()
	}{
		{"kubectl penstock install buoy -n sea --watch-namespace sea", func() { request.WatchNamespace = "sea" }},
		{"", func() {}},
	} {
		if got := request.Hindered(own, "2.0.0"); (got == "") != (step.want == "") || !strings.HasSuffix(got, step.want) {
			t.Errorf("%q, want %q", got, step.want)
		}
		step.answer()
	}
	offered.Installed = []catalogv1alpha1.InstalledVersion{{Extension: "buoy", Version: "1.0.0"}}
	if got := request.Hindered(offered, ""); got != "" {
		t.Errorf("of the same name: %q", got)
	}
	offered.Installed = append(offered.Installed, catalogv1alpha1.InstalledVersion{Extension: "other", Version: "1.0.0"})
	if got := request.Hindered(offered, ""); !strings.Contains(got, "as other") {
		t.Errorf("of another name: %q", got)
	}
}

// TestLatest: the version of the default channel comes first. A higher version is shown with its
// channel.
func TestLatest(t *testing.T) {
	channels := []catalogv1alpha1.PackageChannel{{Name: "candidate", Latest: "1.2.0"}, {Name: "fast", Latest: "1.2.0"}, {Name: "stable", Latest: "1.1.0"}}
	for name, tc := range map[string]struct{ channel, latest, elsewhere string }{
		"lower":  {"stable", "1.1.0", "1.2.0 in candidate, fast"},
		"same":   {"fast", "1.2.0", ""},
		"none":   {"", "1.2.0", ""},
		"absent": {"gone", "1.2.0", ""},
	} {
		latest, elsewhere := Latest(&catalogv1alpha1.CatalogPackage{Latest: "1.2.0", DefaultChannel: tc.channel, Channels: channels})
		if latest != tc.latest || elsewhere != tc.elsewhere {
			t.Errorf("%s: %q %q, want %+v", name, latest, elsewhere, tc)
		}
	}
}

// TestDefaultChannel: the plugin and the console take versions from this channel. They do not
// request a version from it that it lacks.
func TestDefaultChannel(t *testing.T) {
	offered := &catalogv1alpha1.CatalogPackage{
		Channels: []catalogv1alpha1.PackageChannel{{Name: "candidate"}, {Name: "stable"}, {Name: "Not A Name"}},
		Versions: []catalogv1alpha1.PackageVersion{{Version: "1.1.0", Channels: []string{"candidate", "stable"}}, {Version: "1.2.0", Channels: []string{"candidate"}}},
	}
	for channel, want := range map[string]string{"stable": "stable", "": "", "gone": "", "Not A Name": ""} {
		offered.DefaultChannel = channel
		if got := DefaultChannel(offered); got != want {
			t.Errorf("default channel %q: %q, want %q", channel, got, want)
		}
	}
	request := Request{Package: "buoy", Name: "buoy", Channels: []string{"stable"}}
	for version, want := range map[string]string{"": "", "1.1.0": "", "9.9.9": "", ">=1.1 <2": "", "1.2.0": "version 1.2.0 is not in channel stable; it is in candidate"} {
		if got := request.Hindered(offered, version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
	request.Channels = nil
	if got := request.Hindered(offered, "1.2.0"); got != "" {
		t.Errorf("of any channel: %q", got)
	}
}
