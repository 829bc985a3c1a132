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

// Username is the name of Penstock's own user.
const Username = "system:serviceaccount:penstock-system:penstock"

// administered is a host in which the test can grant rights.
type administered interface {
	Host
	Config() *rest.Config
	MustKubectl(args ...string) string
	User(name string, groups ...string) *cluster.Access
}

// User returns the access of Penstock's own user, with its rights in the cluster.
func User(host administered) *cluster.Access {
	return host.User(Username, "system:serviceaccounts", "system:serviceaccounts:penstock-system")
}

// Install grants Penstock's own user the rights of artifacts/deploy, and returns the user. Tests
// that run as this user prove that these rights are enough.
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
	// kube-apiserver learns of RBAC changes from a watch, with a delay.
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

// mayReview returns a review of one of the granted rights.
func mayReview() *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: Username,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews",
		},
	}}
}
