package target

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
)

// UnavailableError reports why the cluster of a Secret cannot be reached. The objects in the
// cluster are unchanged.
type UnavailableError struct {
	// Secret is the namespace and name of the kubeconfig Secret.
	Secret string
	// NeedsPerson is true if only a user can repair the cause.
	NeedsPerson bool
	Why         error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the target cluster of Secret %s cannot be used: %v", e.Secret, e.Why)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Why }

// Config parses the kubeconfig in a Secret. Errors quote no confidential content.
func Config(secret *corev1.Secret) (*rest.Config, error) {
	for _, key := range []string{v1alpha1.TargetKey, v1alpha1.TargetClusterAPIKey} {
		raw, found := secret.Data[key]
		if !found {
			continue
		}
		// Invalid text can be anything, also confidential, and errors can quote it.
		if _, err := clientcmd.Load(raw); err != nil {
			return nil, fmt.Errorf("the content of its key %s is not a kubeconfig", key)
		}
		config, err := kubeconfig.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("its kubeconfig, at key %s: %w", key, err)
		}
		return config, nil
	}
	return nil, fmt.Errorf("it has neither key %s nor key %s", v1alpha1.TargetKey, v1alpha1.TargetClusterAPIKey)
}
