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

// A user who sends a Secret inline could learn whether it equals the stored Secret. The answer to
// an update differs between the same manifest and other manifests. The digest equals the digest of
// the same Secret elsewhere. A PIN could be guessed in minutes.
//
// So the rights to a Secret are checked before the manifest is used. A user without them gets the
// same 403 for a right and a wrong guess. Manifests that the filter cannot see (other encodings,
// JSON patches that assemble a manifest) are not compared: see invalidManifests.

// compares reports whether a write may reveal a comparison of a Secret's manifest with stored
// content before admission checks the rights. An update always does. A create does if its entry has
// a digest. For other Secrets in a create, admission requires the rights to create and to patch
// before the user sees a digest. It requires less for a create-only Secret, so compares returns
// true.
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

// secretsIn returns the Secrets in a decoded body that are compared. An invalid Secret is refused
// without reading the stored content.
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

// secretsInPatch works like secretsIn, for the operations of a JSON patch.
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

// admitSecrets refuses a write with Secrets that the caller must not know.
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

// mayKnow refuses a write of a revision if the caller must not know one of the Secrets.
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

// chainOf returns the chain that a write changes, or "" if its name has none.
func (f *filter) chainOf(info *request.RequestInfo, tree map[string]any) string {
	name := info.Name
	if name == "" {
		metadata, _ := tree["metadata"].(map[string]any)
		name, _ = metadata["name"].(string)
	}
	chain, _, _ := olm.ChainOf(name)
	return chain
}

// targetOf returns the cluster of a revision. For a stored revision, the body is ignored.
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
