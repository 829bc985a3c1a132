package extension

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/crdsafety"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/right"
	"github.com/penstock-project/penstock/pkg/source"
)

// judge says why content must not be installed:
//
//  1. A revision cannot hold it.
//  2. A CustomResourceDefinition of the cluster would change in a way that is not safe. Of
//     another cluster than the host, that is told to nobody who may not use it.
//
// What server-side apply cannot take, the API says when the revision is created.
func (v *visit) judge(ctx context.Context, name name, made *content) *halt {
	if count := source.Count(made.Phases); count > olmv1alpha1.MaxObjects {
		return stop(status.InvalidManifests, fmt.Sprintf("the content has %d objects, and a revision can have at most %d", count, olmv1alpha1.MaxObjects), "")
	}
	if v.enforcement() == extension.EnforcementNone {
		return nil
	}
	target, asked := v.extension.Annotations[extension.TargetAnnotation], false
	for _, phase := range made.Phases {
		for _, object := range phase.Objects {
			if object.Group != "apiextensions.k8s.io" || object.Kind != "CustomResourceDefinition" {
				continue
			}
			if !asked {
				if stopped := v.mayUse(ctx, name.who()); stopped != nil {
					return stopped
				}
				asked = true
			}
			if stopped := v.judgeDefinition(ctx, target, object.Name, object.JSON); stopped != nil {
				return stopped
			}
		}
	}
	return nil
}

// target names the cluster that is rolled out into, empty for the host.
func (v *visit) target() string {
	return cmp.Or(v.extension.Annotations[extension.TargetAnnotation], v.Target)
}

// mayUse says why nothing of another cluster is read for somebody, not even the Secret with
// its kubeconfig.
func (v *visit) mayUse(ctx context.Context, who user.Info) *halt {
	target := v.target()
	if target == "" {
		return nil
	}
	may, err := v.mayHaveAnything(ctx, who)
	if err != nil {
		return retry(status.Failed, fmt.Errorf("finding out whether %s may use target %s: %w", who.GetName(), target, err))
	}
	if !may {
		return denied("%s may not use target %s: CustomResourceDefinitions are compared with those of that cluster", who.GetName(), target)
	}
	return nil
}

// mayHaveAnything is whether somebody may have anything rolled out, without a right on it.
func (v *visit) mayHaveAnything(ctx context.Context, who user.Info) (bool, error) {
	may, err := v.Rights.May(ctx, who, right.Bypass(v.extension.Name))
	if err != nil || may || v.target() == "" {
		return may, err
	}
	return v.Rights.May(ctx, who, right.Use(v.target()))
}

// mayCompare is whether content may be compared with what is stored, in a way that somebody
// sees: that tells whether they have guessed its Secrets. Of a revision that is made in
// somebody's name, admission asks; a proposal, whose digests can be read, nobody else does.
func (v *visit) mayCompare(ctx context.Context, name name, made *content) (bool, *halt) {
	secrets := secretsIn(made.Phases)
	if len(secrets) == 0 || name.as != nil && v.newest() == nil {
		return true, nil
	}
	who := name.who()
	unknown, err := v.unknownSecret(ctx, who, secrets)
	switch {
	case err != nil:
		return false, retry(status.Failed, fmt.Errorf("finding out whether %s may know the Secrets of the content: %w", who.GetName(), err))
	case unknown == nil:
		return true, nil
	case name.as != nil:
		return false, nil
	}
	return false, denied("%s wrote the extension and may neither get nor patch Secret %s/%s: a proposal with this Secret would reveal whether it equals the stored one", who.GetName(), unknown.Namespace, unknown.Name)
}

// unknownSecret is one of some Secrets that somebody may not know, nil when they may know all.
func (v *visit) unknownSecret(ctx context.Context, who user.Info, secrets []manifest.ID) (*manifest.ID, error) {
	if may, err := v.mayHaveAnything(ctx, who); err != nil || may {
		return nil, err
	}
	answers := map[right.Right]bool{}
	for i, secret := range secrets {
		known := false
		for _, scope := range []manifest.ID{{}, {Namespace: secret.Namespace}, secret} {
			for _, verb := range []string{"get", "patch"} {
				asked := right.On(corev1.SchemeGroupVersion.WithResource("secrets"), verb, scope.Namespace, scope.Name)
				if _, given := answers[asked]; !given {
					may, err := v.Rights.May(ctx, who, asked)
					if err != nil {
						return nil, err
					}
					answers[asked] = may
				}
				known = known || answers[asked]
			}
			if known {
				break
			}
		}
		if !known {
			return &secrets[i], nil
		}
	}
	return nil, nil
}

func secretsIn(phases []source.Phase) []manifest.ID {
	var secrets []manifest.ID
	for _, phase := range phases {
		for _, object := range phase.Objects {
			if object.IsSecret() {
				secrets = append(secrets, object.ID)
			}
		}
	}
	return secrets
}

// enforcement is that of CRD upgrade safety.
func (v *visit) enforcement() string {
	install := v.extension.Spec.Install
	if install == nil || install.Preflight == nil || install.Preflight.CRDUpgradeSafety == nil {
		return extension.EnforcementStrict
	}
	return install.Preflight.CRDUpgradeSafety.Enforcement
}

func (v *visit) judgeDefinition(ctx context.Context, target, name string, content []byte) *halt {
	next := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(content, next); err != nil {
		return stop(status.InvalidManifests, fmt.Sprintf("CustomResourceDefinition %s: %s", name, err), "")
	}
	live, err := v.Definitions.Definition(ctx, target, name)
	if err != nil {
		return retry(status.Failed, fmt.Errorf("reading CustomResourceDefinition %s of the cluster, for CRD upgrade safety: %w", name, err))
	}
	if live == nil {
		return nil
	}
	_, err = v.Safety.Check(live, next)
	if unsafe := crdsafety.AsError(err); unsafe != nil {
		err = unsafe
	}
	if err != nil {
		// The one of the cluster changes without a word to us.
		stopped := retry(status.UnsafeDefinitions, err)
		stopped.err = nil
		return stopped
	}
	return nil
}
