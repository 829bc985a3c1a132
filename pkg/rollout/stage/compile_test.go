package stage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// phase builds a phase: phase("deploy", "Namespace a", "Deployment.apps a").
func phase(name string, objects ...string) Phase {
	p := Phase{Name: name}
	for _, object := range objects {
		p.Steps = append(p.Steps, step(object))
	}
	return p
}

// step parses an object "Kind.group name".
func step(object string) Step {
	kind, name, _ := strings.Cut(object, " ")
	gk := schema.ParseGroupKind(kind)
	return Step{Ref: manifest.Ref{ID: manifest.ID{Group: gk.Group, Kind: gk.Kind, Name: name}, Version: "v1"}}
}

// lines prints stages: "deploy/0: Namespace a, … | Namespace a", with the gates after the bar.
func lines(stages []Stage) []string {
	var out []string
	for _, s := range stages {
		var steps, gates []string
		for _, step := range s.Steps {
			steps = append(steps, step.ID.String())
		}
		for _, gate := range s.Gates {
			gates = append(gates, gate.ID.String())
		}
		out = append(out, fmt.Sprintf("%s/%d: %s | %s", s.Phase, s.Wave, strings.Join(steps, ", "), strings.Join(gates, ", ")))
	}
	return out
}

func TestCompile(t *testing.T) {
	cases := map[string]struct {
		reason string
		phases []Phase
		want   []string
	}{
		"Nothing": {reason: "no phases, no stages"},
		"EmptyPhase": {
			reason: "a phase without objects is passed through",
			phases: []Phase{phase("a"), phase("b", "ConfigMap x"), phase("c")},
			want:   []string{"b/0: ConfigMap x | "},
		},
		"Waves": {
			reason: "what is needed first comes first, whatever the order in the phase",
			phases: []Phase{phase("all",
				"ValidatingWebhookConfiguration.admissionregistration.k8s.io hook", "Widget.example.com w", "Deployment.apps server",
				"Service server", "ServiceAccount server", "CustomResourceDefinition.apiextensions.k8s.io widgets", "Namespace ns",
				"APIService.apiregistration.k8s.io v1.example.com", "ClusterRole.rbac.authorization.k8s.io reader")},
			want: []string{
				"all/0: CustomResourceDefinition.apiextensions.k8s.io widgets, Namespace ns | CustomResourceDefinition.apiextensions.k8s.io widgets, Namespace ns",
				"all/1: Service server, ServiceAccount server, ClusterRole.rbac.authorization.k8s.io reader | ",
				"all/2: Widget.example.com w, Deployment.apps server, APIService.apiregistration.k8s.io v1.example.com | Deployment.apps server, APIService.apiregistration.k8s.io v1.example.com",
				"all/3: ValidatingWebhookConfiguration.admissionregistration.k8s.io hook | ",
			},
		},
		"NoGaps": {
			reason: "numbers count the stages of the phase, not the rows of the table",
			phases: []Phase{phase("a", "MutatingWebhookConfiguration.admissionregistration.k8s.io m", "Namespace n")},
			want:   []string{"a/0: Namespace n | Namespace n", "a/1: MutatingWebhookConfiguration.admissionregistration.k8s.io m | "},
		},
		"PhasesWin": {
			reason: "a person's order is never changed: waves only order within a phase",
			phases: []Phase{phase("first", "Deployment.apps d"), phase("second", "Namespace n")},
			want:   []string{"first/0: Deployment.apps d | Deployment.apps d", "second/0: Namespace n | Namespace n"},
		},
		"SameNameOtherGroup": {
			reason: "a kind of the same name in another group is another kind",
			phases: []Phase{phase("a", "Namespace.example.com n", "ConfigMap c")},
			want:   []string{"a/0: ConfigMap c | ", "a/1: Namespace.example.com n | "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stages, err := Compile(tc.phases, Options{Probes: probe.Builtin()})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, lines(stages)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEarly: the stages that are marked Early.
func TestEarly(t *testing.T) {
	const definition = "CustomResourceDefinition.apiextensions.k8s.io "
	cases := map[string]struct {
		reason string
		phases []Phase
		want   []bool
	}{
		"Configuration": {
			reason: "accounts and rights do not need definitions that are served; workloads do",
			phases: []Phase{phase("a", definition+"widgets.example.com", "ServiceAccount s", "Deployment.apps d")},
			want:   []bool{false, true, false},
		},
		"Alone": {
			reason: "the first stage of a phase waits for the phase before, whatever it has",
			phases: []Phase{phase("a", definition+"widgets.example.com"), phase("b", "ServiceAccount s", "Deployment.apps d")},
			want:   []bool{false, false, false},
		},
		"Defined": {
			reason: "what is defined in the same phase cannot be made before that is served",
			phases: []Phase{phase("a", definition+"securitycontextconstraints.security.openshift.io", "SecurityContextConstraints.security.openshift.io s")},
			want:   []bool{false, false},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stages, err := Compile(tc.phases, Options{Probes: probe.Builtin()})
			if err != nil {
				t.Fatal(err)
			}
			var got []bool
			for _, stage := range stages {
				got = append(got, stage.Early)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	noVersion := phase("a", "ConfigMap x")
	noVersion.Steps[0].Version = ""
	var many []Phase
	for i := range 30 {
		many = append(many, phase(fmt.Sprint("p", i), "ConfigMap x"))
	}
	cases := map[string]struct {
		reason string
		phases []Phase
		says   []string
	}{
		"NoName":      {"status speaks of phases by name", []Phase{phase("")}, []string{"phase 0 has no name"}},
		"SamePhase":   {"a name means one phase", []Phase{phase("a"), phase("b"), phase("a")}, []string{`phases 0 and 2 have the same name "a"`}},
		"ObjectTwice": {"two contents for one object", []Phase{phase("a", "ConfigMap x", "ConfigMap x")}, []string{`ConfigMap x is listed twice`, `object 0 of phase "a"`, `object 1 of phase "a"`}},
		"AcrossPhases": {"also when they are far apart", []Phase{phase("a", "ConfigMap x"), phase("b", "ConfigMap y", "ConfigMap x")},
			[]string{`object 0 of phase "a"`, `object 1 of phase "b"`}},
		"NoKind":        {"nothing to apply", []Phase{phase("a", " x")}, []string{"has no kind"}},
		"NoVersion":     {"nobody to send it to", []Phase{noVersion}, []string{"ConfigMap x", "has no version"}},
		"NoObjectName":  {"names are not generated", []Phase{phase("a", "ConfigMap ")}, []string{"has no name"}},
		"EveryProblem":  {"one round to fix them all", []Phase{phase("", "ConfigMap ")}, []string{"phase 0 has no name", "object 0"}},
		"BoundedErrors": {"an error that can still be read", many, []string{"and 19 more"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stages, err := Compile(tc.phases, Options{})
			if err == nil || stages != nil {
				t.Fatalf("%s: got stages %v, error %v", tc.reason, lines(stages), err)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: the error does not say %q: %v", tc.reason, part, err)
				}
			}
		})
	}
}

type always struct{}

func (always) For(schema.GroupKind) probe.Probe { return always{} }

func (always) Probe(*unstructured.Unstructured) probe.Verdict {
	return probe.Verdict{Status: probe.True}
}

func (always) Reads() probe.Reads { return probe.Reads{} }

func TestGates(t *testing.T) {
	phases := []Phase{phase("a", "ConfigMap x", "Namespace n")}
	cases := map[string]struct {
		reason string
		probes probe.Set
		want   []string
	}{
		"NoSet":    {"nothing to wait for but existence", nil, []string{"a/0: Namespace n | ", "a/1: ConfigMap x | "}},
		"Builtin":  {"what is known to become ready", probe.Builtin(), []string{"a/0: Namespace n | Namespace n", "a/1: ConfigMap x | "}},
		"EveryOne": {"what the revision asks for besides", always{}, []string{"a/0: Namespace n | Namespace n", "a/1: ConfigMap x | ConfigMap x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stages, err := Compile(phases, Options{Probes: tc.probes})
			if err != nil {
				t.Fatalf("compiling: %v", err)
			}
			if diff := cmp.Diff(tc.want, lines(stages)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
