//go:build integration

package extension_test

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// memberParts test clusters that join and leave, and their Secrets.
func memberParts() map[string]part {
	return map[string]part{"Joins": joins, "Deleted": secretDeleted, "Renewed": renewed}
}

// joins: a cluster that joins during a rollout waits for the next rollout, which needs an approval.
// It does not begin while another cluster of its wave is unhealthy, although that cluster already
// has the content.
func joins(v convoy) {
	one := []string{"maxUnavailable: 2", "maxUnavailable: 1"}
	v.rolledOut(1, v.manifest(v.image("1", ""), one...), "a Succeeded, b Succeeded")
	v.apply(v.alice, v.manifest(v.image("2", v.deployment()), one...))
	v.approved(v.bob, 2)
	v.available("a", true)
	v.rollout(2, "the change of b begins", v.is("b", fleet.Updating))
	v.open("c", "1", v.ways["c"].kubeconfig())
	v.available("b", true)
	v.ends(2, fleet.Completed, "a Succeeded, b Succeeded")
	third := v.rollout(3, "it waits for an approval", inPhase(fleet.ReviewRequired))
	if groups := third.Spec.Groups; len(groups) != 1 || len(groups[0].Clusters) != 1 || groups[0].Clusters[0] != v.secret("c") {
		v.t.Errorf("the rollout changes %+v", groups)
	}
	if got := v.children(); got != "a b" {
		v.t.Errorf("before the approval, these clusters have an extension: %s", got)
	}
	v.available("b", false)
	v.MustKubectl("wait", "--for=condition=Available=False", poll.TimeoutFlag, "clusterextension/"+extensionset.ChildName(v.name, v.secret("b")))
	v.approved(v.bob, 3)
	v.ends(3, fleet.PhaseHalted, "a Present, b Present")
	v.says(v.types(v.bob, 0, `kubectl penstock fleet status argocd`).Stdout, "raise maxUnavailable", "("+v.secret("b")+")", "fleet skip")
	if got := v.children(); got != "a b" {
		v.t.Errorf("with an unhealthy cluster, these clusters have an extension: %s", got)
	}
	v.available("b", true)
	v.available("c", true)
	v.ends(3, fleet.Completed, "a Present, b Present, c Succeeded")
	v.have("2", "2", "2")
}

// secretDeleted: a cluster without its Secret is unreachable and does not change. When the Secret
// returns, the cluster catches up.
func secretDeleted(v convoy) {
	v.rolledOut(1, v.manifest(v.image("1", "")), "a Succeeded, b Succeeded, c Succeeded")
	v.apply(v.alice, v.manifest(v.image("2", "")))
	v.rollout(2, "it waits for an approval", inPhase(fleet.ReviewRequired))
	v.types(v.bob, 0, `kubectl penstock fleet halt argocd`)
	v.approved(v.bob, 2)
	v.MustKubectl("-n", "penstock-system", "delete", "secret", v.secret("b"))
	v.types(v.bob, 0, `kubectl penstock fleet resume argocd`)
	v.ends(2, fleet.Completed, "a Succeeded, b Deferred, c Succeeded")
	v.have("2", "1", "2")
	if got := v.children(); got != "a b c" {
		v.t.Errorf("these clusters have an extension: %s", got)
	}
	v.open("b", "1", v.ways["b"].kubeconfig())
	v.rollout(2, "b follows", v.is("b", fleet.Succeeded))
	v.have("2", "2", "2")
}

// renewed: a token is renewed during the change of a cluster, and the old token expires. The change
// succeeds.
func renewed(v convoy) {
	b := v.targets["b"]
	b.MustKubectl("-n", v.name, "create", "serviceaccount", "penstock")
	b.MustKubectl("create", "clusterrolebinding", v.name, "--clusterrole=cluster-admin", "--serviceaccount="+v.name+":penstock")
	// A token becomes invalid when the Secret to which it is bound is deleted.
	token := func(secret string) string {
		b.MustKubectl("-n", v.name, "create", "secret", "generic", secret)
		return strings.TrimSpace(b.MustKubectl("-n", v.name, "create", "token", "penstock", "--bound-object-kind=Secret", "--bound-object-name="+secret))
	}
	lead := func(token string) {
		config := v.kubeconfig(b)
		for _, one := range config.AuthInfos {
			*one = clientcmdapi.AuthInfo{Token: token}
		}
		v.open("b", "1", config)
	}
	first := token("first")
	lead(first)
	v.rolledOut(1, v.manifest(v.image("1", "")), "a Succeeded, b Succeeded, c Succeeded")
	v.apply(v.alice, v.manifest(v.image("2", v.deployment())))
	v.approved(v.bob, 2)
	v.available("a", true)
	v.rollout(2, "the change of b begins", v.is("b", fleet.Updating))
	lead(token("second"))
	b.MustKubectl("-n", v.name, "delete", "secret", "first")
	config := rest.AnonymousClientConfig(b.Config())
	config.BearerToken = first
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		v.t.Fatal(err)
	}
	v.eventually("the token before has ended", func() bool {
		_, err := client.CoreV1().Namespaces().Get(context.WithoutCancel(v.t.Context()), v.name, metav1.GetOptions{})
		return apierrors.IsUnauthorized(err)
	})
	v.available("b", true)
	v.available("c", true)
	done := v.ends(2, fleet.Completed, "a Succeeded, b Succeeded, c Succeeded")
	if got := v.place(done, "b").Attempt; got != 1 {
		v.t.Errorf("b began %d times", got)
	}
	v.have("2", "2", "2")
}
