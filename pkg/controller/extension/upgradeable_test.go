package extension

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/operatorcondition"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// Load implements Inventories.
func (p *plane) Load(context.Context, string) (chain.Inventory, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return chain.Inventory{Entries: slices.Clone(p.entries)}, 1, nil
}

// OperatorConditions implements Conditions.
func (p *plane) OperatorConditions(_ context.Context, _ string, namespaces []string) ([]unstructured.Unstructured, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []unstructured.Unstructured
	for _, one := range p.conditions {
		if slices.Contains(namespaces, one.GetNamespace()) {
			found = append(found, *one.DeepCopy())
		}
	}
	return found, p.conditionsErr
}

// upgradeable returns an OperatorCondition with a status, and with an owner if that has a uid.
func upgradeable(name, status string, owner metav1.OwnerReference) unstructured.Unstructured {
	object := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v2", "kind": operatorcondition.Kind,
		"spec": map[string]any{"conditions": []any{map[string]any{"type": operatorcondition.Upgradeable, "status": status, "reason": "Migrating"}}},
	}}
	object.SetNamespace("lamps")
	object.SetName(name)
	if owner.UID != "" {
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
	}
	return object
}

// operatorSays sets whether the installed operator reports that it is upgradeable.
func (p *plane) operatorSays(status string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entries = []chain.Entry{{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "lamps", Name: "lamp", UID: "deployment"}}
	p.conditions = []unstructured.Unstructured{upgradeable("lamp", status, metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "lamp", UID: "deployment"})}
}

// TestNotUpgradeable: the installed operator holds new versions from a catalog until it reports
// that it is upgradeable. An OperatorCondition of another owner neither holds nor releases. While
// OperatorConditions cannot be read, no upgrade begins.
func TestNotUpgradeable(t *testing.T) {
	p := automatic(t)
	operator := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "lamp", UID: "deployment"}
	set := func(err error, conditions ...unstructured.Unstructured) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.conditionsErr, p.conditions = err, conditions
	}
	p.mu.Lock()
	p.entries = []chain.Entry{{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "lamps", Name: "lamp", UID: "deployment"}}
	p.mu.Unlock()
	set(nil, upgradeable("lamp", "False", operator), upgradeable("foreign", "True", metav1.OwnerReference{}))
	p.publish("1.0.0", "1.1.0")
	p.await("the operator holds it", func() bool { return p.condition("UpgradeAvailable") == "True/NotUpgradeable" })
	if message := p.message("Ready"); p.condition("Ready") != "True/Succeeded" || !strings.Contains(message, "an upgrade to 1.1.0 waits: OperatorCondition lamps/lamp: Upgradeable=False (Migrating)") {
		t.Errorf("Ready is %s: %s", p.condition("Ready"), message)
	}
	set(errors.New("no connection"))
	p.await("a missing answer releases nothing", func() bool { return strings.Contains(p.message("Ready"), "no connection") })
	if shown := p.shown(); shown != "1 Active 1.0.0 alice" {
		t.Errorf("there is %s", shown)
	}
	set(nil, upgradeable("lamp", "True", operator), upgradeable("foreign", "False", metav1.OwnerReference{}))
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 system:serviceaccount:lamps:installer")
}

// TestNotUpgradeableMidway: if the operator stops being upgradeable during the rendering, the write
// is held. A user's own write is not held.
func TestNotUpgradeableMidway(t *testing.T) {
	p := automatic(t)
	operator := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "lamp", UID: "deployment"}
	p.mu.Lock()
	p.entries = []chain.Entry{{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "lamps", Name: "lamp", UID: "deployment"}}
	p.mu.Unlock()
	pulled := p.pulls.n()
	asked := 0
	p.windows.set(func(map[string]string) bool { // each check asks the windows first
		p.mu.Lock()
		defer p.mu.Unlock()
		if asked++; asked > 1 {
			p.conditions = []unstructured.Unstructured{upgradeable("lamp", "Unknown", operator)}
		}
		return false
	})
	p.publish("1.0.0", "1.1.0")
	p.await("the operator holds it", func() bool { return p.condition("UpgradeAvailable") == "True/NotUpgradeable" })
	if p.pulls.n() == pulled {
		t.Error("nothing was pulled: the first answer does not count")
	}
	p.apply(version("1.1.0"))
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.1.0 alice")
}
