//go:build integration

package extension_test

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// person writes with a client certificate of their own.
type person struct {
	*cluster.Access
	name string
}

// mayInstall are the rights that installing a bundle of these tests takes, in its namespace
// and beyond: the objects, what its roles grant, and the revisions.
const mayInstall = `
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create]}
- {apiGroups: [""], resources: [configmaps, serviceaccounts], verbs: [create, get, patch, delete]}
- {apiGroups: [apps], resources: [deployments], verbs: [create, patch, delete]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, clusterrolebindings], verbs: [create, patch, delete]}
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
`

// mayWrite are those to write ClusterExtensions.
const mayWrite = `
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensions], verbs: [create, get, patch, update, delete]}
`

// person makes a user with rules; the name is of the scenario, too.
func (w shared) person(name, rules string) person {
	w.t.Helper()
	name += "-" + w.name
	w.grant(name, "User", rules)
	return person{Access: w.User(name), name: name}
}

// author may write extensions and install what they ask for.
func (w shared) author(name string) person { return w.person(name, mayWrite+mayInstall) }

// grant gives somebody rights, and returns when the cluster knows them. The rules of a grant
// replace those before.
func (w shared) grant(to, kind, rules string) {
	w.t.Helper()
	role := "x:" + to
	if rules == "" {
		rules = " []"
	}
	subject := fmt.Sprintf("{kind: User, apiGroup: rbac.authorization.k8s.io, name: %q}", to)
	if kind == "ServiceAccount" {
		subject = fmt.Sprintf("{kind: ServiceAccount, namespace: %s, name: %s}", w.name, to)
		role += "-" + w.name
	}
	probe := fmt.Sprintf("grants-%d", time.Now().UnixNano())
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]q}
rules:
- {nonResourceURLs: ["/%[4]s"], verbs: [get]}
%[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]q}
subjects: [%[3]s]
`, role, rules, subject, probe), "apply", "--server-side", "--force-conflicts", "-f", "-")
	w.t.Cleanup(func() {
		w.Kubectl("delete", "--ignore-not-found", "clusterrole/"+role, "clusterrolebinding/"+role)
	})
	who := to
	if kind == "ServiceAccount" {
		who = "system:serviceaccount:" + w.name + ":" + to
	}
	client, err := kubernetes.NewForConfig(w.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(w.t.Context(), 10*time.Millisecond, poll.Patience, true, func(ctx context.Context) (bool, error) {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/" + probe},
		}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
	if err != nil {
		w.t.Fatalf("the cluster does not know the rights of %s: %v", to, err)
	}
}
