package initializers

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/manifest/loader"
	"k8s.io/utils/ptr"
)

// manifestInitializer lets the policy plugins read policies from files: staticManifestsDir of
// --admission-control-config-file. The host's own policies see the objects that Penstock applies,
// but not requests for Penstock's API. So a host with policies in files gives Penstock the files,
// too.
//
// kube-apiserver reads them with its internal types (k8s.io/kubernetes,
// pkg/kubeapiserver/admission), which no library has. So this package sets their defaults.
type manifestInitializer struct{}

// Initialize implements admission.PluginInitializer.
func (manifestInitializer) Initialize(plugin admission.Interface) {
	wants, ok := plugin.(initializer.WantsManifestLoaders)
	if !ok {
		return
	}
	wants.SetManifestLoaders(&initializer.ManifestLoaders{
		LoadValidatingPolicyManifests: func(dir string) ([]*admissionregistrationv1.ValidatingAdmissionPolicy, []*admissionregistrationv1.ValidatingAdmissionPolicyBinding, string, error) {
			return loader.LoadPolicyManifests(dir, decoder(), accept(func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
				setDefaults(&p.Spec.FailurePolicy, &p.Spec.MatchConstraints)
			}), accept(func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
				setDefaults(nil, &b.Spec.MatchResources)
			}), func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName })
		},
		LoadMutatingPolicyManifests: func(dir string) ([]*admissionregistrationv1.MutatingAdmissionPolicy, []*admissionregistrationv1.MutatingAdmissionPolicyBinding, string, error) {
			return loader.LoadPolicyManifests(dir, decoder(), accept(func(p *admissionregistrationv1.MutatingAdmissionPolicy) {
				setDefaults(&p.Spec.FailurePolicy, &p.Spec.MatchConstraints)
			}), accept(func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) {
				setDefaults(nil, &b.Spec.MatchResources)
			}), func(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) string { return b.Spec.PolicyName })
		},
	})
}

func decoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	scheme.AddKnownTypes(metav1.Unversioned, &metav1.List{})
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		panic(fmt.Sprintf("registering admissionregistration.k8s.io/v1: %v", err)) // the library's own types fit
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// accept accepts objects of one kind, or lists of them, and sets their defaults.
func accept[T metav1.Object](withDefaults func(T)) loader.AcceptObjectFunc[T] {
	return func(object runtime.Object) ([]T, error) {
		objects := []runtime.Object{object}
		if meta.IsListType(object) {
			var err error
			if objects, err = meta.ExtractList(object); err != nil {
				return nil, err
			}
		}
		var all []T
		for _, object := range objects {
			one, is := object.(T)
			if !is {
				return nil, loader.ErrUnrecognizedType
			}
			withDefaults(one)
			all = append(all, one)
		}
		return all, nil
	}
}

// setDefaults sets the defaults of the API (k8s.io/kubernetes, pkg/apis/admissionregistration/v1).
func setDefaults(failure **admissionregistrationv1.FailurePolicyType, match **admissionregistrationv1.MatchResources) {
	if failure != nil && *failure == nil {
		*failure = ptr.To(admissionregistrationv1.Fail)
	}
	if *match == nil {
		return
	}
	m := *match
	if m.MatchPolicy == nil {
		m.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	}
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	if m.ObjectSelector == nil {
		m.ObjectSelector = &metav1.LabelSelector{}
	}
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			if rules[i].Scope == nil {
				rules[i].Scope = ptr.To(admissionregistrationv1.AllScopes)
			}
		}
	}
}
