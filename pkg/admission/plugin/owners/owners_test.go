package owners

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/olm"
)

func TestValidate(t *testing.T) {
	owners := func(uids ...string) metav1.ObjectMeta {
		object := metav1.ObjectMeta{Name: "x"}
		for _, uid := range uids {
			object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: types.UID(uid)})
		}
		return object
	}
	renamed := owners("1")
	renamed.OwnerReferences[0].Name = "other"
	plain := owners()
	plain.Labels = map[string]string{"a": "b"}
	for name, tc := range map[string]struct {
		reason      string
		old, new    metav1.ObjectMeta
		may         bool
		err         error
		asks        bool
		refused     bool
		unavailable bool
	}{
		"Added":         {reason: "it may be gone, and the object with it", old: owners(), new: owners("1"), asks: true, refused: true},
		"AddedBeside":   {reason: "one more", old: owners("1"), new: owners("1", "2"), asks: true, refused: true},
		"AddedInPlace":  {reason: "another one", old: owners("1"), new: owners("2"), asks: true, refused: true},
		"NameOfAnother": {reason: "a name that does not belong to the uid", old: owners("1"), new: renamed, asks: true, refused: true},
		"AddedByRight":  {reason: "who may delete it may", old: owners(), new: owners("1"), may: true, asks: true},
		"Removed":       {reason: "it stays", old: owners("1", "2"), new: owners("1")},
		"Kept":          {reason: "as it was", old: owners("1"), new: owners("1")},
		"Label":         {reason: "no owners", old: owners(), new: plain},
		"Unknown":       {reason: "no answer is no right", old: owners(), new: owners("1"), err: errors.New("away"), asks: true, unavailable: true},
	} {
		for _, resource := range []schema.GroupVersionResource{
			{Group: olm.GroupName, Version: "v1alpha1", Resource: "clusterextensionrevisions"},
			{Group: hco.GroupName, Version: "v1alpha1", Resource: "configurationplans"},
			{Group: hco.GroupName, Version: "v1alpha1", Resource: "configurationprofiledefinitions"},
		} {
			t.Run(name+"/"+resource.Resource, func(t *testing.T) {
				asked := false
				p := New()
				p.SetAuthorizer(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					asked = true
					if tc.may && a.GetVerb() == "delete" && a.GetResource() == resource.Resource && a.GetAPIGroup() == resource.Group && a.GetName() == "x" {
						return authorizer.DecisionAllow, "", nil
					}
					return authorizer.DecisionNoOpinion, "", tc.err
				}))
				object := func(meta metav1.ObjectMeta) *metav1.PartialObjectMetadata {
					return &metav1.PartialObjectMetadata{ObjectMeta: meta}
				}
				err := p.Validate(t.Context(), admission.NewAttributesRecord(object(tc.new), object(tc.old), schema.GroupVersionKind{Group: resource.Group, Version: "v1alpha1", Kind: "K"}, "", "x", resource, "",
					admission.Update, nil, false, &user.DefaultInfo{Name: "mallory"}), nil)
				if asked != tc.asks || apierrors.IsForbidden(err) != tc.refused || (err != nil) != (tc.refused || tc.unavailable) {
					t.Errorf("%s: asked is %t, answer %v", tc.reason, asked, err)
				}
			})
		}
	}
}
