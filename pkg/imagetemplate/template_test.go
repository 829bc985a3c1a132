package imagetemplate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const sample = "{group:foo.example.com,version:v1,kind:Sample,name:MySample,namespace:ns,jsonpath:{.spec.foo.bar}}"

// values returns a resolver of variables that looks up their text in a map.
func values(of map[string]string) func(Variable) string {
	return func(v Variable) string { return of[v.Text] }
}

func TestResolve(t *testing.T) {
	known := map[string]string{"{kube_major_version}": "1", "{kube_minor_version}": "20", "{kube_patch_version}": "3", sample: "v2"}
	for name, tc := range map[string]struct {
		reason, text string
		want         Result
	}{
		"DesignVersions":  {"the first example of the design", "quay.io/kube-release-v{kube_major_version}/catalog:v{kube_major_version}.{kube_minor_version}", Result{Image: "quay.io/kube-release-v1/catalog:v1.20"}},
		"DesignObject":    {"the second one", "quay.io/sample/catalog:" + sample, Result{Image: "quay.io/sample/catalog:v2"}},
		"Everywhere":      {"host, path and tag", "r{kube_major_version}.example.com/x{kube_minor_version}/c:{kube_patch_version}", Result{Image: "r1.example.com/x20/c:3"}},
		"NoVariable":      {"a reference is a template", "quay.io/a/b:v1", Result{Image: "quay.io/a/b:v1"}},
		"Digest":          {"a digest stays", "quay.io/a/b:v{kube_minor_version}@sha256:" + strings.Repeat("a", 64), Result{Image: "quay.io/a/b:v20@sha256:" + strings.Repeat("a", 64)}},
		"Mixed":           {"both kinds", "quay.io/a/b:{kube_major_version}-" + sample, Result{Image: "quay.io/a/b:1-v2"}},
		"Empty":           {"no reference", "", Result{Malformed: true}},
		"UpperCase":       {"no variable", "quay.io/x:{KUBE_MAJOR_VERSION}", Result{Malformed: true}},
		"Spaces":          {"no variable", "quay.io/x:{ kube_major_version }", Result{Malformed: true}},
		"Unknown":         {"no variable", "quay.io/x:{foobar}", Result{Malformed: true}},
		"Nothing":         {"no variable", "quay.io/x:{}", Result{Malformed: true}},
		"Nested":          {"the braces around it are too many", "quay.io/x:{{kube_major_version}}", Result{Malformed: true}},
		"Unclosed":        {"no variable", "quay.io/x:{kube_major_version", Result{Malformed: true}},
		"Unopened":        {"a brace too many", "quay.io/x:v1}", Result{Malformed: true}},
		"TrailingBrace":   {"a brace too many", "quay.io/x:{kube_major_version}}", Result{Malformed: true}},
		"Olm":             {"rejected by the design", "quay.io/x:{olm_major_version}", Result{Malformed: true}},
		"Newline":         {"no reference", "quay.io/x:v{kube_major_version}\n", Result{Malformed: true}},
		"NUL":             {"no reference", "quay.io/x\x00:v{kube_major_version}", Result{Malformed: true}},
		"Scheme":          {"no reference", "https://quay.io/x:v{kube_major_version}", Result{Malformed: true}},
		"Parent":          {"no reference", "quay.io/../x:v{kube_major_version}", Result{Malformed: true}},
		"LongTag":         {"a tag has at most 128 characters", "quay.io/x:" + strings.Repeat("a", 128) + "{kube_major_version}", Result{Malformed: true}},
		"HexName":         {"it looks like an id", strings.Repeat("a", 64), Result{Malformed: true}},
		"UnicodeDigits":   {"no reference", "quay.io/x:v{kube_major_version}٣", Result{Malformed: true}},
		"BrokenBefore":    {"what is broken does not swallow what follows", "x{group:broken}/" + sample, Result{Malformed: true}},
		"BrokenUnknown":   {"both are told", "x{group:broken}/{group:,version:v1,kind:ConfigMap,name:a,namespace:b,jsonpath:{.data.c}}", Result{Malformed: true, Unresolved: []string{"{group:,version:v1,kind:ConfigMap,name:a,namespace:b,jsonpath:{.data.c}}"}}},
		"PathWithBraces":  {"braces in quotes end nothing", `quay.io/x:{group:g.io,version:v1,kind:K,name:n,namespace:,jsonpath:{.items[?(@.x=="}}")].y}}`, Result{Unresolved: []string{`{group:g.io,version:v1,kind:K,name:n,namespace:,jsonpath:{.items[?(@.x=="}}")].y}}`}}},
		"SpaceInField":    {"no spaces", "quay.io/x:{group:g.io,version: v1,kind:K,name:n,namespace:s,jsonpath:{.a}}", Result{Malformed: true}},
		"OtherOrder":      {"the order is fixed", "quay.io/x:{version:v1,group:g.io,kind:K,name:n,namespace:s,jsonpath:{.a}}", Result{Malformed: true}},
		"PathNoBraces":    {"a path has braces", "quay.io/x:{group:g.io,version:v1,kind:K,name:n,namespace:s,jsonpath:.a}", Result{Malformed: true}},
		"PathTwoBraces":   {"one pair", "quay.io/x:{group:g.io,version:v1,kind:K,name:n,namespace:s,jsonpath:{.a}{.b}}", Result{Malformed: true}},
		"PathUnclosed":    {"a path has braces", "quay.io/x:{group:g.io,version:v1,kind:K,name:n,namespace:s,jsonpath:{range", Result{Malformed: true}},
		"PathSpace":       {"no spaces", "quay.io/x:{group:g.io,version:v1,kind:K,name:n,namespace:s,jsonpath:{.a b}}", Result{Malformed: true}},
		"LowerKind":       {"a resource is no kind", "quay.io/x:{group:,version:v1,kind:configmaps,name:n,namespace:s,jsonpath:{.a}}", Result{Malformed: true}},
		"Subresource":     {"a kind has no slash", "quay.io/x:{group:,version:v1,kind:Pod/log,name:n,namespace:s,jsonpath:{.a}}", Result{Malformed: true}},
		"NameWithSlash":   {"a name is one part of a path", "quay.io/x:{group:,version:v1,kind:K,name:a/b,namespace:s,jsonpath:{.a}}", Result{Malformed: true}},
		"NameOfPath":      {"a name is no way elsewhere", "quay.io/x:{group:,version:v1,kind:K,name:..,namespace:s,jsonpath:{.a}}", Result{Malformed: true}},
		"MissingField":    {"all are there", "quay.io/x:{group:g.io,version:v1,kind:K,name:n,jsonpath:{.a}}", Result{Malformed: true}},
		"Blank":           {"all blank", "quay.io/x:{group:,version:,kind:,name:,namespace:,jsonpath:{}}", Result{Malformed: true}},
		"Megabyte":        {"too long", strings.Repeat("a", 1<<20), Result{Malformed: true}},
		"TenThousand":     {"too long", strings.Repeat("{kube_major_version}", 10000), Result{Malformed: true}},
		"TooMany":         {"too many", "quay.io/x:" + strings.Repeat("{kube_major_version}", MaxVariables+1), Result{Malformed: true}},
		"UnresolvedOrder": {"each once, in their order", "quay.io/x{group:b.io,version:v1,kind:K,name:n,namespace:,jsonpath:{.a}}/{kube_minor_version}:{group:a.io,version:v1,kind:K,name:n,namespace:,jsonpath:{.a}}{group:b.io,version:v1,kind:K,name:n,namespace:,jsonpath:{.a}}", Result{Unresolved: []string{"{group:b.io,version:v1,kind:K,name:n,namespace:,jsonpath:{.a}}", "{group:a.io,version:v1,kind:K,name:n,namespace:,jsonpath:{.a}}"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Parse(tc.text).Resolve(values(known))
			if got.Image != tc.want.Image || got.Malformed != tc.want.Malformed || !slices.Equal(got.Unresolved, tc.want.Unresolved) {
				t.Errorf("%s: it is %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestHostileValues: a value cannot select another registry or image than the template, and is not
// parsed as a template.
func TestHostileValues(t *testing.T) {
	for _, value := range []string{
		"", "v1@sha256:" + strings.Repeat("a", 64), "../../evil", "evil.io/x", "{kube_minor_version}", "v1:v2", "٣", "a b", "a\n", "a\x00", "v1.36.0+abc", "日本", strings.Repeat("a", 129), "%2f",
	} {
		for _, text := range []string{"quay.io/sample/catalog:" + sample, sample + "/catalog:v1", "quay.io/" + sample + "/catalog"} {
			got := Parse(text).Resolve(values(map[string]string{sample: value, "{kube_minor_version}": "36"}))
			if got.Image != "" || got.Malformed || len(got.Unresolved) != 1 {
				t.Errorf("%q in %s: %+v", value, text, got)
			}
		}
	}
}

// TestValuesMakeNoHost: the spelling of a name's first part decides whether it is a host. A value
// cannot turn the first part into a host.
func TestValuesMakeNoHost(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"team" + sample + "/catalog:v1":          {"7": "team7/catalog:v1", ".evil.io": "", "X": "", "-a.b": ""},
		"local" + sample + "/catalog:v1":         {"7": "local7/catalog:v1", "host": ""},
		sample + "/catalog:v1":                   {"library": "library/catalog:v1", "r.example.com": "r.example.com/catalog:v1"},
		"registry" + sample + ".example.com/a:b": {"7": "registry7.example.com/a:b", "-a.b": "registry-a.b.example.com/a:b"},
		"quay.io/team" + sample + "/catalog:v1":  {".evil.io": "quay.io/team.evil.io/catalog:v1", "7.1": "quay.io/team7.1/catalog:v1"},
		"catalog:" + sample:                      {"4.17": "catalog:4.17"},
		"host:50" + sample + "/catalog:v1":       {"00": "host:5000/catalog:v1"},
	} {
		for value, image := range want {
			if got := Parse(text).Resolve(values(map[string]string{sample: value})); got.Image != image || got.Malformed != (image == "") {
				t.Errorf("%q in %s: %+v, want %q", value, text, got, image)
			}
		}
	}
}

func TestField(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Field
	}{
		"Design":        {sample, Field{Object{"foo.example.com", "v1", "Sample", "ns", "MySample"}, "{.spec.foo.bar}"}},
		"Core":          {"{group:,version:v1,kind:ConfigMap,name:a,namespace:b,jsonpath:{.data.x}}", Field{Object{"", "v1", "ConfigMap", "b", "a"}, "{.data.x}"}},
		"ClusterScoped": {"{group:config.openshift.io,version:v1,kind:ClusterVersion,name:version,namespace:,jsonpath:{.status.desired.version}}", Field{Object{"config.openshift.io", "v1", "ClusterVersion", "", "version"}, "{.status.desired.version}"}},
		"OddName":       {"{group:rbac.authorization.k8s.io,version:v1,kind:ClusterRole,name:system:node,namespace:,jsonpath:{.metadata.name}}", Field{Object{"rbac.authorization.k8s.io", "v1", "ClusterRole", "", "system:node"}, "{.metadata.name}"}},
		"Quotes":        {`{group:,version:v1,kind:ConfigMap,name:a,namespace:b,jsonpath:{.data['a\'}']}}`, Field{Object{"", "v1", "ConfigMap", "b", "a"}, `{.data['a\'}']}`}},
	} {
		t.Run(name, func(t *testing.T) {
			parsed := Parse("x:" + tc.text)
			found := parsed.Variables()
			if parsed.Problem != nil || len(found) != 1 || found[0].Field == nil || *found[0].Field != tc.want || found[0].Text != tc.text {
				t.Fatalf("it is %+v with %v, want %+v", found, parsed.Problem, tc.want)
			}
		})
	}
}

func TestProblem(t *testing.T) {
	for text, want := range map[string]string{
		"a:{x}":                "at byte 2: {kube_major_version}",
		"a}":                   "at byte 1: there is no {",
		"{group:a,version:v1,": `at byte 0: version of the object must be followed by ",kind:"`,
		"{group:A,version:v1,kind:K,name:n,namespace:s,jsonpath:{.a}}": `at byte 0: group of the object is "A"`,
		strings.Repeat("a", MaxLength+1):                               "a template has at most 4096 bytes, and this one has 4097",
	} {
		if got := Parse(text).Problem; got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, got, want)
		}
	}
}

func TestKubeVersion(t *testing.T) {
	for text, want := range map[string]string{
		"v1.36.3": "1 36 3", "v1.36.3+k3s1": "1 36 3", "v1.36.3-gke.100": "1 36 3", "v1.36.0-alpha.1": "1 36 0", "1.36.0": "1 36 0",
		"v1.36": "", "": "", "v1.36.1.4": "", "v01.2.3": "", "1.36+": "", "v1.36.٣": "",
	} {
		got, err := KubeVersion(text)
		shown := ""
		if err == nil {
			shown = got[KubeMajor] + " " + got[KubeMinor] + " " + got[KubePatch]
		}
		if shown != want {
			t.Errorf("%q is %q, want %q", text, shown, want)
		}
	}
}

// TestFieldTemplates: a registry with a port, and a digest, stay unchanged. The version of
// OpenShift is not a variable.
func TestFieldTemplates(t *testing.T) {
	raw, err := os.ReadFile("../../../shared/data/field-cases/plans/12-templates/catalogs.yaml")
	if err != nil {
		t.Skipf("the cases of the field are kept beside the repository: %v", err)
	}
	known := values(map[string]string{"{kube_major_version}": "1", "{kube_minor_version}": "36", "{kube_patch_version}": "3"})
	want := map[string]Result{
		"port":    {Image: "registry.corp.example:5000/olm/catalog:v1.36"},
		"ocp":     {Malformed: true},
		"digest":  {Image: "quay.io/example/catalog-1-36@sha256:" + strings.Repeat("a", 64)},
		"address": {Image: "quay.io/example/catalog:v36"},
		"both":    {Image: "quay.io/example/catalog:v36"},
	}
	for _, document := range strings.Split(string(raw), "\n---") {
		var source struct {
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
		}
		if err := yaml.Unmarshal([]byte(document), &source); err != nil {
			t.Fatal(err)
		}
		text, ok := source.Metadata.Annotations["olm.catalogImageTemplate"]
		if !ok {
			continue
		}
		if diff := cmp.Diff(want[source.Metadata.Name], Parse(text).Resolve(known)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source.Metadata.Name, diff)
		}
		delete(want, source.Metadata.Name)
	}
	if len(want) > 0 {
		t.Errorf("not in the file: %v", want)
	}
}
