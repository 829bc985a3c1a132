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

// person is a user with a client certificate.
type person struct {
	*cluster.Access
	name string
}

// mayInstall are the rights that an installation of these bundles needs: its objects, the rights
// that its roles grant, and revisions.
const mayInstall = `
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create]}
- {apiGroups: [""], resources: [configmaps, serviceaccounts], verbs: [create, get, patch, delete]}
- {apiGroups: [apps], resources: [deployments], verbs: [create, patch, delete]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, clusterrolebindings], verbs: [create, patch, delete]}
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
`

// mayWrite are the rights to write ClusterExtensions.
const mayWrite = `
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensions], verbs: [create, get, patch, update, delete]}
`

// person returns a user with RBAC rules. The scenario's name is part of the user's name.
func (w shared) person(name, rules string) person {
	w.t.Helper()
	name += "-" + w.name
	w.grant(name, "User", rules)
	return person{Access: w.User(name), name: name}
}

// author returns a user who can write extensions and install their bundles.
func (w shared) author(name string) person { return w.person(name, mayWrite+mayInstall) }

// grant replaces the rights of a user or ServiceAccount, and returns when kube-apiserver has
// observed them.
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
