package clusterextensionrevision

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
)

// A user who sends a Secret inline learns whether it is the stored one: by the answer to
// an update, which is one for the same manifest and another one for any other, and by
// its digest, which is equal to that of the same Secret elsewhere. A PIN is found in
// minutes that way. So it is asked first who may know the Secret, before anything is
// made of what they brought, and for right and wrong alike the answer to all others is
// the same 403. Of what the filter does not see (other encodings, what a JSON patch puts
// together of pieces) nothing is compared: see invalidManifests.

// compares reports whether a write may have the manifest of a Secret compared with what is stored,
// before admission asks about it. An update always does. A create does when it says which digest
// the manifest has. Of any other Secret that a create brings admission asks for the rights to
// create and to patch it before anybody is told its digest; but of one that is create-only it asks
// for less, and is asked about here as well.
func compares(verb string, entry map[string]any, object manifest.Object) bool {
	if !object.IsSecret() {
		return false
	}
	if verb != "create" || entry["digest"] != nil {
		return true
	}
	mark, offences := release.MarkOf(object)
	return mark.CreateOnly || len(offences) > 0
}

// secretsIn returns the Secrets in a decoded body that are compared. One with mistakes is
// refused for them, without a look at what is stored.
func secretsIn(verb string, tree map[string]any) []manifest.ID {
	var secrets []manifest.ID
	eachEntry(tree, func(entry map[string]any) {
		body, ok := entry["object"].(map[string]any)
		if !ok {
			return
		}
		if object, err := manifest.Canonical(body); err == nil && compares(verb, entry, object) {
			secrets = append(secrets, object.ID)
		}
	})
	return secrets
}

// secretsInPatch is secretsIn for the operations of a JSON patch.
func secretsInPatch(operations []map[string]any) []manifest.ID {
	var secrets []manifest.ID
	eachBrought(operations, func(body any) {
		tree, ok := body.(map[string]any)
		if !ok {
			return
		}
		if object, err := manifest.Canonical(tree); err == nil && object.IsSecret() {
			secrets = append(secrets, object.ID)
		}
	})
	return secrets
}

// admitSecrets refuses a write that brings Secrets which the caller cannot know.
func (f *filter) admitSecrets(ctx context.Context, info *request.RequestInfo, tree map[string]any, secrets []manifest.ID) error {
	who, _ := request.UserFrom(ctx)
	if len(secrets) == 0 || admissionrequest.IsInternal(ctx, who) {
		return nil
	}
	caller := access.New(f.deps.Authorizer)
	anything, err := caller.MayHaveAnything(ctx, f.chainOf(info, tree), f.targetOf(ctx, info, tree))
	if err != nil || anything {
		return err
	}
	return mayKnow(ctx, caller, info.Name, secrets)
}

// mayKnow refuses a write of a revision unless the caller may know all of some Secrets.
func mayKnow(ctx context.Context, caller *access.Caller, revision string, secrets []manifest.ID) error {
	asked := map[manifest.ID]bool{}
	for _, secret := range secrets {
		if asked[secret] {
			continue
		}
		asked[secret] = true
		may, err := caller.MayKnowSecret(ctx, secret.Namespace, secret.Name)
		switch {
		case err != nil:
			return err
		case !may:
			return apierrors.NewForbidden(v1alpha1.Resource(resource), revision, fmt.Errorf(
				"this write contains the manifest of Secret %s/%s, and its result would show whether the same manifest is stored: you need the right to get or to patch that Secret; "+
					"if a revision already has it, its digest is enough", secret.Namespace, secret.Name))
		}
	}
	return nil
}

// chainOf is the chain that a write is about, empty when its name says none.
func (f *filter) chainOf(info *request.RequestInfo, tree map[string]any) string {
	name := info.Name
	if name == "" {
		metadata, _ := tree["metadata"].(map[string]any)
		name, _ = metadata["name"].(string)
	}
	chain, _, _ := olm.ChainOf(name)
	return chain
}

// targetOf is the cluster that a revision is for: of one that is stored what it says,
// whatever the body does.
func (f *filter) targetOf(ctx context.Context, info *request.RequestInfo, tree map[string]any) string {
	if f.deps.Target != "" {
		return f.deps.Target
	}
	if info.Verb != "create" {
		if stored, err := f.deps.Stored(ctx, info.Name); err == nil {
			return stored.Target()
		}
	}
	spec, _ := tree["spec"].(map[string]any)
	ref, _ := spec["targetRef"].(map[string]any)
	name, _ := ref["name"].(string)
	return name
}
