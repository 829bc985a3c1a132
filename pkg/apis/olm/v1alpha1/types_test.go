package v1alpha1_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kyaml "sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/install"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}

func TestDefaults(t *testing.T) {
	cases := map[string]struct {
		reason   string
		in, want v1alpha1.ClusterExtensionRevisionSpec
	}{
		"Empty": {
			reason: "a spec that says nothing is active, careful and cleans up",
			want: v1alpha1.ClusterExtensionRevisionSpec{
				LifecycleState:        v1alpha1.LifecycleStateActive,
				CollisionProtection:   v1alpha1.CollisionProtectionPrevent,
				OnFailure:             v1alpha1.OnFailureNone,
				TeardownPolicy:        v1alpha1.TeardownPolicyDelete,
				AdoptedTeardownPolicy: v1alpha1.TeardownPolicyOrphan,
			},
		},
		"Given": {
			reason: "what is said stays",
			in: v1alpha1.ClusterExtensionRevisionSpec{
				LifecycleState:        v1alpha1.LifecycleStatePaused,
				CollisionProtection:   v1alpha1.CollisionProtectionNone,
				OnFailure:             v1alpha1.OnFailureRollback,
				TeardownPolicy:        v1alpha1.TeardownPolicyOrphan,
				AdoptedTeardownPolicy: v1alpha1.TeardownPolicyDelete,
			},
			want: v1alpha1.ClusterExtensionRevisionSpec{
				LifecycleState:        v1alpha1.LifecycleStatePaused,
				CollisionProtection:   v1alpha1.CollisionProtectionNone,
				OnFailure:             v1alpha1.OnFailureRollback,
				TeardownPolicy:        v1alpha1.TeardownPolicyOrphan,
				AdoptedTeardownPolicy: v1alpha1.TeardownPolicyDelete,
			},
		},
		"Nested": {
			reason: "an empty collisionProtection of a phase or an object asks the level above",
			in: v1alpha1.ClusterExtensionRevisionSpec{
				CollisionProtection: v1alpha1.CollisionProtectionNone,
				Phases:              []v1alpha1.RevisionPhase{{Name: "a", Objects: []v1alpha1.RevisionObject{{Name: "b"}}}},
			},
			want: v1alpha1.ClusterExtensionRevisionSpec{
				LifecycleState:        v1alpha1.LifecycleStateActive,
				CollisionProtection:   v1alpha1.CollisionProtectionNone,
				OnFailure:             v1alpha1.OnFailureNone,
				TeardownPolicy:        v1alpha1.TeardownPolicyDelete,
				AdoptedTeardownPolicy: v1alpha1.TeardownPolicyOrphan,
				Phases:                []v1alpha1.RevisionPhase{{Name: "a", Objects: []v1alpha1.RevisionObject{{Name: "b"}}}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			revision := &v1alpha1.ClusterExtensionRevision{Spec: tc.in}
			newScheme().Default(revision)
			if diff := cmp.Diff(tc.want, revision.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFieldLabels(t *testing.T) {
	cases := map[string]struct {
		reason  string
		label   string
		wantErr bool
	}{
		"Name":      {"every kind has it", "metadata.name", false},
		"Revision":  {"indexed by the registry", v1alpha1.RevisionField, false},
		"State":     {"indexed by the registry", v1alpha1.LifecycleStateField, false},
		"Namespace": {"revisions have none", "metadata.namespace", true},
		"Unknown":   {"would silently match nothing", "status.phase", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			label, value, err := newScheme().ConvertFieldLabel(
				v1alpha1.SchemeGroupVersion.WithKind("ClusterExtensionRevision"), tc.label, "1")
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v, want one: %t", tc.reason, err, tc.wantErr)
			}
			if err == nil && (label != tc.label || value != "1") {
				t.Errorf("%s: got %s=%s", tc.reason, label, value)
			}
		})
	}
}

func TestManifestJSON(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   *v1alpha1.Manifest
		out    string
	}{
		"Object": {"bytes stay as they are", `{"object":{"b":1,"a":{"n":1e3}}}`, &v1alpha1.Manifest{Raw: []byte(`{"b":1,"a":{"n":1e3}}`)}, `{"object":{"b":1,"a":{"n":1e3}}}`},
		"Absent": {"no manifest is no field", `{"name":"x"}`, nil, `{"name":"x"}`},
		"Null":   {"null is no manifest", `{"object":null}`, nil, `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var object v1alpha1.RevisionObject
			if err := json.Unmarshal([]byte(tc.in), &object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, object.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			out, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.out, string(out)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			kept := object.DeepCopy()
			if object.Object != nil {
				object.Object.Raw[0] = 'x'
			}
			if diff := cmp.Diff(tc.want, kept.Object); diff != "" {
				t.Errorf("a deep copy shares its bytes (-want +got):\n%s", diff)
			}
		})
	}
}

// Server-side apply and dynamic clients convert to maps and back.
func TestManifestUnstructured(t *testing.T) {
	revision := &v1alpha1.ClusterExtensionRevision{Spec: v1alpha1.ClusterExtensionRevisionSpec{
		Phases: []v1alpha1.RevisionPhase{{Name: "a", Objects: []v1alpha1.RevisionObject{
			{Object: &v1alpha1.Manifest{Raw: []byte(`{"kind":"ConfigMap"}`)}}, {Name: "b"},
		}}},
	}}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(revision)
	if err != nil {
		t.Fatal(err)
	}
	phases, _, err := unstructured.NestedSlice(tree, "spec", "phases")
	if err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"name": "a", "objects": []any{
		map[string]any{"object": map[string]any{"kind": "ConfigMap"}}, map[string]any{"name": "b"},
	}}}
	if diff := cmp.Diff(want, phases); diff != "" {
		t.Errorf("to unstructured (-want +got):\n%s", diff)
	}
	var back v1alpha1.ClusterExtensionRevision
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*revision, back); diff != "" {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
}

func TestManifestsOptions(t *testing.T) {
	scheme := newScheme()
	query := url.Values{"objectKind": {"Deployment.apps"}, "objectNamespace": {"argocd"}, "objectName": {"server"}, "pretty": {"true"}}
	var got v1alpha1.RevisionManifestsOptions
	if err := runtime.NewParameterCodec(scheme).DecodeParameters(query, v1alpha1.SchemeGroupVersion, &got); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.RevisionManifestsOptions{ObjectKind: "Deployment.apps", ObjectNamespace: "argocd", ObjectName: "server"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The subresource manifests returns a list that kubectl can read. Its items are the unchanged
// manifests.
func TestManifestListIsAList(t *testing.T) {
	scheme := newScheme()
	list := &v1alpha1.RevisionManifestList{Items: []runtime.RawExtension{
		{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)},
		{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b","namespace":"c"}}`)},
	}}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
	encoded, err := runtime.Encode(codec, list)
	if err != nil {
		t.Fatal(err)
	}
	// kubectl converts YAML to JSON and decodes the JSON without a scheme.
	asYAML, err := kyaml.JSONToYAML(encoded)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := kyaml.YAMLToJSON(asYAML)
	if err != nil {
		t.Fatal(err)
	}
	decoded, kind, err := unstructured.UnstructuredJSONScheme.Decode(asJSON, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := v1alpha1.SchemeGroupVersion.WithKind("List"); *kind != want {
		t.Errorf("kind %s, want %s: kubectl has a REST mapping for no other", kind, want)
	}
	if !meta.IsListType(decoded) {
		t.Fatalf("kubectl sees a %T and no list", decoded)
	}
	var got []string
	if err := meta.EachListItem(decoded, func(item runtime.Object) error {
		object := item.(*unstructured.Unstructured)
		got = append(got, object.GroupVersionKind().String()+" "+object.GetNamespace()+"/"+object.GetName())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"/v1, Kind=ConfigMap /a", "apps/v1, Kind=Deployment c/b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestKindsAreRegistered(t *testing.T) {
	scheme := newScheme()
	for kind, object := range map[string]runtime.Object{
		"ClusterExtensionRevision":     &v1alpha1.ClusterExtensionRevision{},
		"ClusterExtensionRevisionList": &v1alpha1.ClusterExtensionRevisionList{},
		"RevisionManifestsOptions":     &v1alpha1.RevisionManifestsOptions{},
		"List":                         &v1alpha1.RevisionManifestList{},
		"ListOptions":                  &metav1.ListOptions{},
	} {
		t.Run(kind, func(t *testing.T) {
			got, err := scheme.New(v1alpha1.SchemeGroupVersion.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
