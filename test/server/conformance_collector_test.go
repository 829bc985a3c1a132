//go:build integration

package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// collectorManners are the requests of kube-controller-manager's garbage collector.
func collectorManners() map[string]manner {
	return map[string]manner{
		"OwnerBackground": {do: func(s *subject) { owner(s, "Background") }},
		"OwnerForeground": {do: func(s *subject) { owner(s, "Foreground") }},
		"OwnerOrphan":     {do: func(s *subject) { owner(s, "Orphan") }},
		"Owned":           {do: owned},
		"OwnedByNobody":   {do: ownedByNobody},
	}
}

// settled waits until look returns want, and records that.
func (s *subject) settled(what, want string, look func() string) {
	s.t.Helper()
	eventually(s.t, what, func() error {
		if got := look(); got != want {
			return fmt.Errorf("%s, want %s", got, want)
		}
		return nil
	})
	s.note(what, "%s", want)
}

// reference returns an owner reference to an object.
func reference(owner map[string]any) []any {
	return []any{map[string]any{
		"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": at(owner, "metadata", "name"), "uid": at(owner, "metadata", "uid"),
		"blockOwnerDeletion": true,
	}}
}

// dependent creates a ConfigMap with an owner, and returns a function that reads its state.
func (s *subject) dependent(owner map[string]any) func() string {
	s.t.Helper()
	clients, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	maps := clients.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	name := s.base + "-" + s.singular
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "ownerReferences": reference(owner)},
	}}
	if _, err := maps.Create(s.t.Context(), object, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	return func() string {
		live, err := maps.Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return string(apierrors.ReasonForError(err))
		}
		return fmt.Sprintf("there, %d owners", len(live.GetOwnerReferences()))
	}
}

// owner deletes an owner of a dependent.
func owner(s *subject, policy string) {
	dependent := s.dependent(s.create("a").body)
	s.note("at first", "%s", dependent())
	s.must(call{method: http.MethodDelete, name: s.name("a"), body: map[string]any{"propagationPolicy": policy}})
	own := func() string { return fmt.Sprint(at(s.get("a").body, "metadata", "finalizers")) }
	switch policy {
	case "Background":
		s.note("dependent while the owner is there", "%s", dependent())
	case "Foreground":
		s.settled("dependent while the owner is there", "NotFound", dependent)
	case "Orphan":
		s.settled("dependent while the owner is there", "there, 0 owners", dependent)
	}
	s.settled("finalizers left", "["+s.finalizer+"]", own)
	s.release("a")
	s.answered("owner", call{method: http.MethodGet, name: s.name("a")})
	if policy == "Orphan" {
		s.note("dependent", "%s", dependent())
		return
	}
	s.settled("dependent", "NotFound", dependent)
}

// owned: an object of ours is deleted with its owner, a host object.
func owned(s *subject) {
	owner := s.base + "-" + s.singular
	s.MustKubectl("create", "clusterrole", owner, "--verb=get", "--resource=pods")
	uid := s.MustKubectl("get", "clusterrole", owner, "-o", "jsonpath={.metadata.uid}")
	references := reference(map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": owner, "uid": uid},
	})
	s.must(call{method: http.MethodPost, body: with(s.draft(s.name("a")), references, "metadata", "ownerReferences")})
	// The garbage collector does not hold an owner for dependents that it has not observed yet.
	// Once it deletes object b, it has observed the older object a.
	s.orphaned("b")
	s.MustKubectl("delete", "clusterrole", owner, "--cascade=foreground", "--wait=false")
	doomed := func() string {
		return fmt.Sprintf("deleted %t", at(s.get("a").body, "metadata", "deletionTimestamp") != nil)
	}
	s.settled("owned", "deleted true", doomed)
	s.note("the owner waits", "%t", s.Kubectl("get", "clusterrole", owner).ExitCode == 0)
	s.release("a")
	s.settled("owner", "gone", func() string {
		if s.Kubectl("get", "clusterrole", owner).ExitCode == 0 {
			return "there"
		}
		return "gone"
	})
}

// ownedByNobody: the owner does not exist, so the garbage collector deletes the object.
func ownedByNobody(s *subject) { s.orphaned("a") }

// orphaned creates an object with a missing owner, and waits until the garbage collector deletes
// it.
func (s *subject) orphaned(name string) {
	s.t.Helper()
	references := reference(map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "never-was", "uid": "11111111-1111-1111-1111-111111111111"},
	})
	s.must(call{method: http.MethodPost, body: with(s.draft(s.name(name)), references, "metadata", "ownerReferences")})
	s.settled("owned by nobody", "deleted true", func() string {
		return fmt.Sprintf("deleted %t", at(s.get(name).body, "metadata", "deletionTimestamp") != nil)
	})
	s.release(name)
}

// watchable lists the resources of a group that can be listed and watched. The quota controller
// watches all of them, and the garbage collector watches those that can also be deleted.
func watchable(t *testing.T, c *cluster.Cluster, version schema.GroupVersion) []string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, resource := range list.APIResources {
		if slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch") {
			names = append(names, resource.Name)
		}
	}
	return names
}

// neighbours: with our types in discovery, kube-controller-manager still does its work for other
// objects. Quotas are counted and namespaces are deleted.
func neighbours(t *testing.T, c *cluster.Cluster) {
	for _, breed := range ours() {
		want := []string{breed.resource.Resource}
		switch breed.kind { // also stored in this group
		case "ConfigurationPlan":
			want = append(want, "configurationprofiledefinitions")
		case "ClusterExtensionRevision":
			want = append(want, "clusterextensionrollouts")
		}
		if diff := cmp.Diff(want, watchable(t, c, breed.resource.GroupVersion())); diff != "" {
			t.Errorf("watchable resources of %s, want those that are stored (-want +got):\n%s", breed.resource.GroupVersion(), diff)
		}
	}
	c.MustKubectl("create", "namespace", "neighbour")
	in := "--namespace=neighbour"
	// Every namespace has one ConfigMap. If it appears while the quota is new, it may stay
	// uncounted for five minutes.
	eventually(t, "the ConfigMap that everybody has", func() error {
		if out := c.Kubectl("get", "configmap", "kube-root-ca.crt", in); out.ExitCode != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	c.MustKubectl("create", "quota", "few", "--hard=configmaps=3,secrets=1", in)
	used := func(want string) {
		t.Helper()
		eventually(t, "counting", func() error {
			if got := c.MustKubectl("get", "quota", "few", in, "-o", "jsonpath={.status.used.configmaps}"); got != want {
				return missingError{"used " + want + ", not " + got}
			}
			return nil
		})
	}
	used("1")
	c.MustKubectl("create", "configmap", "one", in)
	used("2")
	c.MustKubectl("create", "configmap", "two", in)
	eventually(t, "the quota", func() error {
		if out := c.Kubectl("create", "configmap", "three", in, "--dry-run=server"); !strings.Contains(out.Stderr, "exceeded quota: few") {
			return errors.New(out.String())
		}
		return nil
	})
	c.MustKubectl("delete", "configmap", "one", in)
	used("2")
	c.MustKubectl("delete", "namespace", "neighbour", poll.TimeoutFlag)
}
