package penstock

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// Username is Penstock's own.
const Username = "system:serviceaccount:penstock-system:penstock"

// administered is a host that we may give rights in.
type administered interface {
	Host
	Config() *rest.Config
	MustKubectl(args ...string) string
	User(name string, groups ...string) *cluster.Access
}

// User returns the access of Penstock's own user in a cluster, with its rights there.
func User(host administered) *cluster.Access {
	return host.User(Username, "system:serviceaccounts", "system:serviceaccounts:penstock-system")
}

// Install gives Penstock's own user the rights of artifacts/deploy, and returns the user. Tests
// that run as this user show that the rights suffice.
func Install(t testing.TB, host administered) Host {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatalf("penstock: %v", err)
	}
	base := filepath.Join(root, "artifacts", "deploy", "base")
	args := []string{"apply", "--server-side", "--force-conflicts"}
	for _, name := range []string{"namespace.yaml", "rbac.yaml", "rbac-engine.yaml"} {
		args = append(args, "-f", filepath.Join(base, name))
	}
	host.MustKubectl(args...)
	client, err := kubernetes.NewForConfig(host.Config())
	if err != nil {
		t.Fatalf("penstock: making a client for the host: %v", err)
	}
	// The cluster learns of rights from a watch.
	var said authorizationv1.SubjectAccessReviewStatus
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, poll.Patience, true, func(ctx context.Context) (bool, error) {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, mayReview(), metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		said = review.Status
		return said.Allowed, nil
	})
	if err != nil {
		t.Fatalf("penstock: the cluster does not know the rights that it was given: %v (%+v)", err, said)
	}
	return User(host)
}

// mayReview asks for one of the rights.
func mayReview() *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: Username,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews",
		},
	}}
}
