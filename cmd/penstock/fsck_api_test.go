package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned/fake"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestFsckByAPI: the command compares the digests itself, and does not trust the server's
// statement.
func TestFsckByAPI(t *testing.T) {
	first, err := manifest.Digester{}.FromJSON([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first"},"data":{"k":"1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	const other = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first"},"data":{"k":"2"}}`
	entries := []v1alpha1.RevisionObject{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "first", Digest: string(first.Digest)},
		{APIVersion: "v1", Kind: "Secret", Name: "hidden", Digest: "hmac-sha256:00"},
	}
	for name, tc := range map[string]struct {
		reason    string
		manifests []string
		rows      []v1alpha1.RevisionRecord
		want      []string
		failed    bool
	}{
		"Sound":     {"all is there; a Secret may be left out", []string{string(first.JSON)}, []v1alpha1.RevisionRecord{{Name: "a-1"}}, nil, false},
		"Other":     {"another content than the digest says", []string{other}, []v1alpha1.RevisionRecord{{Name: "a-1"}}, []string{"Corrupt clusterextensionrevisions/a-1"}, false},
		"Missing":   {"a manifest is not there", nil, []v1alpha1.RevisionRecord{{Name: "a-1"}}, []string{"Missing clusterextensionrevisions/a-1"}, false},
		"NoRow":     {"the history does not know the revision", []string{string(first.JSON)}, nil, []string{"Missing revisionhistories/a"}, false},
		"NoHistory": {"the history cannot be read", []string{string(first.JSON)}, nil, []string{"Unreadable revisionhistories/a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			clients := fake.NewClientset(&v1alpha1.ClusterExtensionRevision{
				ObjectMeta: metav1.ObjectMeta{Name: "a-1", Labels: map[string]string{v1alpha1.ChainLabel: "a"}},
				Spec:       v1alpha1.ClusterExtensionRevisionSpec{Revision: 1, Phases: []v1alpha1.RevisionPhase{{Name: "one", Objects: entries}}},
			})
			clients.PrependReactor("get", "clusterextensionrevisions/manifests", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if action.GetSubresource() != "manifests" {
					return false, nil, nil
				}
				list := &v1alpha1.RevisionManifestList{}
				for _, one := range tc.manifests {
					list.Items = append(list.Items, runtime.RawExtension{Raw: []byte(one)})
				}
				return true, list, nil
			})
			clients.PrependReactor("get", "revisionhistories", func(clienttesting.Action) (bool, runtime.Object, error) {
				if tc.failed {
					return true, nil, apierrors.NewInternalError(errors.New("the record is damaged"))
				}
				return true, &v1alpha1.RevisionHistory{Revisions: tc.rows}, nil
			})
			clients.PrependReactor("list", "configurationplans", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configurationplans"}, "", nil)
			})
			c := &apiCheck{api: clients, heard: &client.Warnings{}}
			if err := c.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, problem := range c.report.Problems {
				got = append(got, string(problem.Kind)+" "+problem.Key)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%+v", tc.reason, diff, c.report.Problems)
			}
			if diff := cmp.Diff([]string{"list configurationplans.hco.kubevirt.io"}, c.report.Unchecked); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}
