package target

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
)

const (
	// claimName is the ConfigMap in kube-system of a target cluster that records which Penstock
	// writes there. Two Penstocks that roll out the same extension into one cluster would treat
	// each other's objects as their own.
	claimName = "penstock-target"
	// claimStore is the key with the identity of the claiming store.
	claimStore = "store"
)

// Visitor identifies and claims clusters for a store.
type Visitor struct {
	// Store is the identity of the own store.
	Store string
	// UserAgent is the user agent of the requests.
	UserAgent string
}

// ClaimedError reports that another Penstock has claimed a cluster.
type ClaimedError struct{ Store string }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("the target cluster belongs to another Penstock, with the store %s, according to ConfigMap %s/%s there: when that Penstock is gone, delete the ConfigMap",
		e.Store, metav1.NamespaceSystem, claimName)
}

// Look returns the identity of a configuration's cluster: the uid of its namespace kube-system. If
// another Penstock has claimed the cluster, the error is a *ClaimedError.
func (v Visitor) Look(ctx context.Context, config *rest.Config) (string, error) {
	cluster := ""
	err := v.visit(ctx, config, func(found string, _ bool, _ typedcorev1.ConfigMapInterface) error {
		cluster = found
		return nil
	})
	return cluster, err
}

// Enter claims a cluster for this store:
//
//  1. It reads the identity of the cluster, and checks that no other Penstock has claimed it.
//  2. It calls meant, unless nil, to check that this is the expected cluster.
//  3. It writes the claim.
//
// It returns the identity of the cluster, like Look.
func (v Visitor) Enter(ctx context.Context, config *rest.Config, meant func(ctx context.Context, cluster string) error) (string, error) {
	cluster := ""
	err := v.visit(ctx, config, func(found string, ours bool, claims typedcorev1.ConfigMapInterface) error {
		cluster = found
		if meant != nil {
			if err := meant(ctx, found); err != nil {
				return err
			}
		}
		if ours {
			return nil
		}
		return v.claim(ctx, claims)
	})
	return cluster, err
}

// visit reads the identity of a cluster, and whether this store has claimed it.
func (v Visitor) visit(ctx context.Context, config *rest.Config, then func(cluster string, ours bool, claims typedcorev1.ConfigMapInterface) error) error {
	// A separate link, so that its connections end with the visit.
	ahead := kubeconfig.NewLink()
	if err := ahead.Lead(config); err != nil {
		return err
	}
	defer ahead.Lose(context.Canceled)
	asking := ahead.Config()
	asking.UserAgent = v.UserAgent
	client, err := kubernetes.NewForConfig(asking)
	if err != nil {
		return fmt.Errorf("making a client for the target cluster: %w", err)
	}
	system, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("asking the target cluster which one it is: %w", err)
	}
	claims := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	ours, err := v.claimed(ctx, claims)
	if err != nil {
		return err
	}
	return then(string(system.UID), ours, claims)
}

// claimed reports whether this store has claimed the cluster. The claim of another Penstock is an
// error.
func (v Visitor) claimed(ctx context.Context, claims typedcorev1.ConfigMapInterface) (bool, error) {
	found, err := claims.Get(ctx, claimName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("finding out whose the target cluster is: %w", err)
	case found.Data[claimStore] != v.Store:
		return false, &ClaimedError{found.Data[claimStore]}
	}
	return true, nil
}

// claim claims an unclaimed cluster. If two Penstocks do so at the same time, one of them gets an
// error and tries again.
func (v Visitor) claim(ctx context.Context, claims typedcorev1.ConfigMapInterface) error {
	_, err := claims.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: claimName}, Data: map[string]string{claimStore: v.Store},
	}, metav1.CreateOptions{FieldManager: "penstock"})
	if err != nil {
		return fmt.Errorf("claiming the target cluster by ConfigMap %s/%s: %w", metav1.NamespaceSystem, claimName, err)
	}
	return nil
}
