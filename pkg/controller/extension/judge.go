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
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/crdsafety"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

// judge returns the reason why content must not be installed, or nil:
//
//  1. It has more objects than a revision can have.
//  2. It would change a CustomResourceDefinition of the cluster in an unsafe way. For a remote
//     cluster,
//     this is checked only for users who can use that cluster.
//
// When a revision is created, the API itself refuses manifests that server-side apply cannot
// handle.
func (s *scope) judge(ctx context.Context, identity maker.Identity, made *content) *maker.Outcome {
	if count := source.Count(made.Phases); count > olmv1alpha1.MaxObjects {
		return stop(status.InvalidManifests, fmt.Sprintf("the content has %d objects, and a revision can have at most %d", count, olmv1alpha1.MaxObjects), "")
	}
	if s.enforcement() == extension.EnforcementNone {
		return nil
	}
	target, asked := s.extension.Annotations[extension.TargetAnnotation], false
	for _, phase := range made.Phases {
		for _, object := range phase.Objects {
			if object.Group != "apiextensions.k8s.io" || object.Kind != "CustomResourceDefinition" {
				continue
			}
			if !asked {
				if stopped := s.mayUse(ctx, identity.Who()); stopped != nil {
					return stopped
				}
				asked = true
			}
			if stopped := s.judgeDefinition(ctx, target, object.Name, object.JSON); stopped != nil {
				return stopped
			}
		}
	}
	return nil
}

// target returns the name of the target cluster; empty for the host.
func (s *scope) target() string {
	return cmp.Or(s.extension.Annotations[extension.TargetAnnotation], s.Target)
}

// mayUse returns the reason why Penstock must not read a remote cluster for a user, or nil. Without
// the right it does not even read the Secret with the kubeconfig.
func (s *scope) mayUse(ctx context.Context, who user.Info) *maker.Outcome {
	target := s.target()
	if target == "" {
		return nil
	}
	may, err := s.mayHaveAnything(ctx, who)
	if err != nil {
		return retry(status.Failed, fmt.Errorf("finding out whether %s may use target %s: %w", who.GetName(), target, err))
	}
	if !may {
		return denied("%s cannot use target %s: CustomResourceDefinitions and OperatorConditions of that cluster are read", who.GetName(), target)
	}
	return nil
}

// mayHaveAnything reports whether a user may roll out any object, without a right on that object.
func (s *scope) mayHaveAnything(ctx context.Context, who user.Info) (bool, error) {
	may, err := s.Rights.May(ctx, who, authz.Bypass(s.extension.Name))
	if err != nil || may || s.target() == "" {
		return may, err
	}
	return s.Rights.May(ctx, who, authz.Use(s.target()))
}

// mayCompare reports whether content may be compared with stored content, if users can see the
// result. The result reveals whether a user has guessed the content of a Secret. For a revision
// that is created as a user, admission checks this. A proposal has readable digests, and only this
// function checks it.
func (s *scope) mayCompare(ctx context.Context, identity maker.Identity, made *content) (bool, *maker.Outcome) {
	secrets := secretsIn(made.Phases)
	if len(secrets) == 0 || identity.As != nil && s.Newest() == nil {
		return true, nil
	}
	who := identity.Who()
	unknown, err := s.unknownSecret(ctx, who, secrets)
	switch {
	case err != nil:
		return false, retry(status.Failed, fmt.Errorf("finding out whether %s may know the Secrets of the content: %w", who.GetName(), err))
	case unknown == nil:
		return true, nil
	case identity.As != nil:
		return false, nil
	}
	return false, denied("%s wrote the extension and may neither get nor patch Secret %s/%s: a proposal with this Secret would reveal whether it equals the stored one", who.GetName(), unknown.Namespace, unknown.Name)
}

// unknownSecret returns a Secret that the user has no right to know, or nil.
func (s *scope) unknownSecret(ctx context.Context, who user.Info, secrets []manifest.ID) (*manifest.ID, error) {
	if may, err := s.mayHaveAnything(ctx, who); err != nil || may {
		return nil, err
	}
	answers := map[authz.Right]bool{}
	for i, secret := range secrets {
		known := false
		for _, scope := range []manifest.ID{{}, {Namespace: secret.Namespace}, secret} {
			for _, verb := range []string{"get", "patch"} {
				asked := authz.On(corev1.SchemeGroupVersion.WithResource("secrets"), verb, scope.Namespace, scope.Name)
				if _, given := answers[asked]; !given {
					may, err := s.Rights.May(ctx, who, asked)
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

func (s *scope) enforcement() string {
	install := s.extension.Spec.Install
	if install == nil || install.Preflight == nil || install.Preflight.CRDUpgradeSafety == nil {
		return extension.EnforcementStrict
	}
	return install.Preflight.CRDUpgradeSafety.Enforcement
}

func (s *scope) judgeDefinition(ctx context.Context, target, name string, content []byte) *maker.Outcome {
	next := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(content, next); err != nil {
		return stop(status.InvalidManifests, fmt.Sprintf("CustomResourceDefinition %s: %s", name, err), "")
	}
	live, err := s.Definitions.Definition(ctx, target, name)
	if err != nil {
		return retry(status.Failed, fmt.Errorf("reading CustomResourceDefinition %s of the cluster, for CRD upgrade safety: %w", name, err))
	}
	if live == nil {
		return nil
	}
	_, err = s.Safety.Check(live, next)
	if unsafe := crdsafety.AsError(err); unsafe != nil {
		err = unsafe
	}
	if err != nil {
		// The definition in the cluster can change without an event for this controller.
		stopped := retry(status.UnsafeDefinitions, err)
		stopped.Err = nil
		return stopped
	}
	return nil
}
