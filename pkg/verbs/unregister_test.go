package verbs

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned/fake"
)

// TestReleaseWithoutController: a revision without a running controller, or with a blocked one, is
// released after the timeout. Only our finalizer is removed.
func TestReleaseWithoutController(t *testing.T) {
	revision := func(chain, name string, number int64) *v1alpha1.ClusterExtensionRevision {
		return &v1alpha1.ClusterExtensionRevision{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: "1", Labels: map[string]string{v1alpha1.ChainLabel: chain},
				Finalizers: []string{"example.com/backup", v1alpha1.TeardownFinalizer},
			},
			Spec: v1alpha1.ClusterExtensionRevisionSpec{Revision: number},
		}
	}
	clients := fake.NewClientset(revision("b", "b-1", 1), revision("a", "a-10", 10), revision("a", "a-9", 9))
	var deleted []string
	clients.PrependReactor("delete", "clusterextensionrevisions", func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion := action.(clienttesting.DeleteAction)
		deleted = append(deleted, deletion.GetName())
		if policy := deletion.GetDeleteOptions().PropagationPolicy; policy == nil || *policy != metav1.DeletePropagationOrphan {
			t.Errorf("%s is deleted with its objects", deletion.GetName())
		}
		// The object stays, as with a finalizer.
		return true, nil, nil
	})
	var out bytes.Buffer
	r := &releaser{api: clients.OlmV1alpha1().ClusterExtensionRevisions(), out: &out, timeout: 10 * time.Millisecond}
	if err := r.release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-9", "a-10", "b-1"}, deleted); diff != "" {
		t.Errorf("a chain must go oldest first (-want +got):\n%s", diff)
	}
	left, err := clients.OlmV1alpha1().ClusterExtensionRevisions().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range left.Items {
		if !slices.Equal(found.Finalizers, []string{"example.com/backup"}) {
			t.Errorf("%s has the finalizers %v", found.Name, found.Finalizers)
		}
	}
	for _, want := range []string{"clusterextensionrevision a-9 released without its controller", "3 revisions released"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

func TestReleaseWithoutAPI(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Unregistered": {"there is nothing to release where nothing is served", apierrors.NewNotFound(v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions").GroupResource(), ""), ""},
		"Degraded":     {"what cannot be read cannot be released, and a person is told what that means", apierrors.NewServiceUnavailable("the store is empty"), "leave out --release-finalizers: the store is empty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clients := fake.NewClientset()
			clients.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			r := &releaser{api: clients.OlmV1alpha1().ClusterExtensionRevisions(), out: &bytes.Buffer{}, timeout: time.Millisecond}
			err := r.release(t.Context())
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
