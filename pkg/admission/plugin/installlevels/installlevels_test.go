package installlevels

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
)

// configMap returns a ConfigMap. annotations are in JSON.
func configMap(t *testing.T, name, annotations string) manifest.Object {
	t.Helper()
	object, err := manifest.Digester{}.FromJSON(fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":%s,"name":%q,"namespace":"a"}}`, annotations, name))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func level(value string) string {
	return fmt.Sprintf(`{"release.openshift.io/create-only":"true","release.openshift.io/install-level":%q}`, value)
}

// revision lists objects, each in a separate phase, in the form of the endpoint.
func revision(objects ...manifest.Object) *olm.ClusterExtensionRevision {
	r := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "argocd-1"}}
	for i, object := range objects {
		mark, _ := release.MarkOf(object)
		r.Spec.Phases = append(r.Spec.Phases, olm.RevisionPhase{Name: fmt.Sprint("p", i), Objects: []olm.RevisionObject{{
			APIVersion: object.APIVersion(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, Digest: string(object.Digest),
			CreateOnly: mark.CreateOnly, InstallLevel: int32(mark.Level),
		}}})
	}
	return r
}

func attributes(r *olm.ClusterExtensionRevision, subresource string) admission.Attributes {
	return admission.NewAttributesRecord(r, nil, v1alpha1.SchemeGroupVersion.WithKind("ClusterExtensionRevision"), "", r.Name,
		v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), subresource, admission.Create, &metav1.CreateOptions{}, false, nil)
}

func TestValidate(t *testing.T) {
	fine, one := configMap(t, "fine", `{"note":"x"}`), configMap(t, "one", level("1"))
	bad, worse := configMap(t, "bad", level("2")), configMap(t, "awful", level("01"))
	alone := configMap(t, "alone", `{"release.openshift.io/install-level":"1"}`)
	cases := map[string]struct {
		reason   string
		revision *olm.ClusterExtensionRevision
		objects  []manifest.Object
		want     []string
		invalid  bool
	}{
		"Fine":  {reason: "levels that exist", revision: revision(fine, one), objects: []manifest.Object{fine, one}},
		"Empty": {reason: "nothing to judge", revision: revision(), objects: []manifest.Object{}},
		"All": {
			reason: "every offender, sorted, with its place, value and what is allowed", revision: revision(bad, one, worse, alone), objects: []manifest.Object{bad, one, worse, alone}, invalid: true,
			want: []string{
				`spec.phases[3].objects[0].object.metadata.annotations[release.openshift.io/install-level]: Invalid value: ConfigMap a/alone: annotation release.openshift.io/install-level is "1", which needs release.openshift.io/create-only: "true" beside it`,
				`spec.phases[2].objects[0].object.metadata.annotations[release.openshift.io/install-level]: Invalid value: ConfigMap a/awful: annotation release.openshift.io/install-level is "01", want "0" or "1"`,
				`spec.phases[0].objects[0].object.metadata.annotations[release.openshift.io/install-level]: Invalid value: ConfigMap a/bad: annotation release.openshift.io/install-level is "2", want "0" or "1"`,
			},
		},
		"Unsaid": {
			reason: "a digest of an earlier revision that does not show it", objects: []manifest.Object{one}, invalid: true,
			revision: func() *olm.ClusterExtensionRevision {
				r := revision(one)
				r.Spec.Phases[0].Objects[0].CreateOnly = false
				return r
			}(),
			want: []string{"give the manifest in object"},
		},
		"OtherManifests": {reason: "an endpoint that tells of other objects", revision: revision(one), objects: []manifest.Object{fine}, want: []string{"is not among its manifests"}},
		"NoManifests":    {reason: "an endpoint that forgot to tell", revision: revision(one), want: []string{"the endpoint did not return"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.objects != nil {
				ctx = request.WithManifests(ctx, tc.objects)
			}
			err := New().Validate(ctx, attributes(tc.revision, ""), nil)
			if (err != nil) != (len(tc.want) > 0) || apierrors.IsInvalid(err) != tc.invalid {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			at := 0
			for _, part := range tc.want {
				found := strings.Index(err.Error()[at:], part)
				if found < 0 {
					t.Fatalf("%s: %q is missing or out of order in %v", tc.reason, part, err)
				}
				at += found
			}
		})
	}
}

func TestOthersPass(t *testing.T) {
	bad := configMap(t, "bad", level("2"))
	if err := New().Validate(t.Context(), attributes(revision(bad), "status"), nil); err != nil {
		t.Errorf("a write of status has no content to judge: %v", err)
	}
	if New().Handles(admission.Update) {
		t.Error("content never changes: an update has nothing to judge")
	}
}

func TestOffencesAreBounded(t *testing.T) {
	var objects []manifest.Object
	for i := range maxOffences + 50 {
		objects = append(objects, configMap(t, fmt.Sprint("c-", i), level("2")))
	}
	err := New().Validate(request.WithManifests(t.Context(), objects), attributes(revision(objects...), ""), nil)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "and 50 more") {
		t.Errorf("got %v", err)
	}
}

type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

func TestWarnings(t *testing.T) {
	late := configMap(t, "late", level("1"))
	workload, err := manifest.Digester{}.FromJSON([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"server","namespace":"a"},
		"spec":{"template":{"metadata":{"annotations":{"release.openshift.io/install-level":"1"}},
		"spec":{"containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"late"}}]}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	said := &recorder{}
	ctx := warning.WithWarningRecorder(request.WithManifests(context.Background(), []manifest.Object{workload, late}), said)
	if err := New().Validate(ctx, attributes(revision(workload, late), ""), nil); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Deployment.apps a/server, of install level 0, needs ConfigMap a/late, which is of install level 1: the first installation waits until another user or controller creates it",
		"Deployment.apps a/server: release.openshift.io/install-level on the pod template has no effect: it belongs on the object itself",
	}
	if diff := cmp.Diff(want, said.texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMetrics(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	p := New()
	p.SetDeps(Deps{Metrics: NewMetrics(registry)})
	fine, bad := configMap(t, "fine", level("1")), configMap(t, "bad", level("2"))
	for _, object := range []manifest.Object{fine, bad} {
		_ = p.Validate(request.WithManifests(t.Context(), []manifest.Object{object}), attributes(revision(object), ""), nil)
	}
	want := `
# HELP penstock_install_levels_decisions_total [ALPHA] New revisions whose install levels were checked, by decision (allowed, denied, failed).
# TYPE penstock_install_levels_decisions_total counter
penstock_install_levels_decisions_total{decision="allowed"} 1
penstock_install_levels_decisions_total{decision="denied"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
