//go:build integration

package extension_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// failureParts test clusters that fail, and approvals that are not valid any more.
func failureParts() map[string]part {
	return map[string]part{"RollsBack": rollsBack, "Soaks": soaks, "Lost": lost, "Moved": moved, "Editor": editor}
}

// rollsBack: a failing cluster is rolled back, as its annotation on-failure asks, and halts the
// rollout. The remaining clusters do not change. A retry needs the digest of the current failures.
func rollsBack(v convoy) {
	back := []string{"template: {spec:", `template: {metadata: {annotations: {penstock.dev/on-failure: Rollback, penstock.dev/progress-deadline-minutes: "1"}}, spec:`, "maxUnavailable: 2", "maxUnavailable: 1"}
	v.rolledOut(1, v.manifest(v.image("1", ""), back...), "a Succeeded, b Succeeded, c Succeeded")
	v.targets["b"].MustKubectl("-n", v.name, "create", "configmap", "shade")
	v.apply(v.alice, v.manifest(v.image("2", v.shade()), back...))
	before := v.approved(v.bob, 2)
	halted := v.ends(2, fleet.PhaseHalted, "a Succeeded, b RolledBack")
	v.have("2", "1", "1")
	retry := func(digest string) error {
		_, err := v.as(v.bob).OlmV1alpha1().ClusterExtensionRollouts().Retry(v.t.Context(), halted.Name,
			&olmv1alpha1.RolloutRequest{Spec: olmv1alpha1.RolloutRequestSpec{Digest: digest, Clusters: []string{v.secret("b")}}}, metav1.CreateOptions{})
		return err
	}
	v.conflicts("a retry by the digest of before", retry(before.Status.Troubles))
	v.targets["b"].MustKubectl("-n", v.name, "delete", "configmap", "shade")
	if err := retry(halted.Status.Troubles); err != nil {
		v.t.Fatal(err)
	}
	v.ends(2, fleet.Completed, "a Succeeded, b Succeeded, c Succeeded")
	v.have("2", "2", "2")
}

// soaks: a cluster that becomes unavailable starts its soak time again when it is available.
func soaks(v convoy) {
	const soak = 30 * time.Second
	v.apply(v.alice, v.manifest(v.image("1", v.deployment()), "soakSeconds: 1", fmt.Sprint("soakSeconds: ", int(soak.Seconds()))))
	v.approved(v.bob, 1)
	v.available("a", true)
	healthy := func(is bool) func(*olmv1alpha1.ClusterExtensionRollout) bool {
		return func(r *olmv1alpha1.ClusterExtensionRollout) bool {
			return v.is("a", fleet.Soaking)(r) && (v.place(r, "a").Healthy != nil) == is
		}
	}
	v.rollout(1, "the canary soaks", healthy(true))
	v.available("a", false)
	v.rollout(1, "the canary is unavailable", healthy(false))
	anew := time.Now()
	v.available("a", true)
	began := v.place(v.rollout(1, "the next wave begins", v.is("b", fleet.Updating)), "b").Since
	if after := began.Sub(anew); after < soak {
		v.t.Errorf("the next wave began %s after the canary was available again, want %s at least", after, soak)
	}
}

// lost: a cluster that becomes unreachable during its change keeps its slot until the deadline, and
// then fails. A retry recognizes the work done before.
func lost(v convoy) {
	const deadline = time.Minute
	bounds := []string{"deadlineSeconds: 1800", fmt.Sprint("deadlineSeconds: ", int(deadline.Seconds())), "maxUnavailable: 2", "maxUnavailable: 1"}
	v.rolledOut(1, v.manifest(v.image("1", ""), bounds...), "a Succeeded, b Succeeded, c Succeeded")
	v.apply(v.alice, v.manifest(v.image("2", v.deployment()), bounds...))
	v.approved(v.bob, 2)
	v.available("a", true)
	began := v.place(v.rollout(2, "the change of b begins", v.is("b", fleet.Updating)), "b")
	v.targets["b"].MustKubectl("-n", v.name, "wait", "--for=create", "--timeout=10m", "deployment/lamp")
	v.ways["b"].hangUp()
	v.rollout(2, "b is lost", v.is("b", fleet.Unknown))
	halted := v.ends(2, fleet.PhaseHalted, "a Succeeded, b Failed")
	failed := v.place(halted, "b")
	if after := failed.Since.Sub(began.Since.Time); failed.Reason != string(fleet.ReasonDeadlineExceeded) || after < deadline {
		v.t.Errorf("b failed with %s after %s, want %s after %s at least", failed.Reason, after, fleet.ReasonDeadlineExceeded, deadline)
	}
	if got := v.has("c"); got != "1" {
		v.t.Errorf("c began while b used the only slot: it has %q", got)
	}
	v.ways["b"].mend()
	v.available("b", true)
	v.types(v.bob, 0, `kubectl penstock fleet retry argocd edge-17`)
	v.available("c", true)
	v.ends(2, fleet.Completed, "a Succeeded, b Succeeded, c Succeeded")
	v.have("2", "2", "2")
}

// moved: the clusters get the reviewed image, even if its tag has moved. A new review has another
// digest.
func moved(v convoy) {
	tag := v.images.Host + "/plain/" + v.name + ":stable"
	move := func(version string) {
		v.t.Helper()
		folder := v.t.TempDir()
		content := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp, namespace: %s}\ndata: {version: %q}\n", v.name, version)
		if err := os.WriteFile(filepath.Join(folder, "lamp.yaml"), []byte(content), 0o600); err != nil {
			v.t.Fatal(err)
		}
		image, err := registry.FromFolder(folder)
		if err == nil {
			err = registry.Push(v.t.Context(), v.images.Dir, tag, image)
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
	move("1")
	v.apply(v.alice, v.manifest(tag))
	first := v.rollout(1, "it waits for an approval", inPhase(fleet.ReviewRequired))
	move("2")
	if err := v.approve(v.bob, first, first.Status.Digest); err != nil {
		v.t.Fatal(err)
	}
	v.ends(1, fleet.Completed, "a Succeeded, b Succeeded, c Succeeded")
	v.have("1", "1", "1")

	// The new target of the tag is not reviewed yet.
	second := v.proposed("2")
	v.conflicts("the digest of before is approved", v.approve(v.bob, second, first.Status.Digest))
	if err := v.approve(v.bob, second, second.Status.Digest); err != nil {
		v.t.Fatal(err)
	}
	number, err := strconv.Atoi(strings.TrimPrefix(second.Name, v.name+"-"))
	if err != nil {
		v.t.Fatal(err)
	}
	v.ends(number, fleet.Completed, "a Succeeded, b Succeeded, c Succeeded")
	v.have("2", "2", "2")
}

// proposed waits for the rollout that brings a version to all three clusters, and returns it.
// Earlier rollouts may contain fewer clusters.
func (v convoy) proposed(version string) *olmv1alpha1.ClusterExtensionRollout {
	v.t.Helper()
	var found *olmv1alpha1.ClusterExtensionRollout
	v.await(extensionset.Resource, v.name, "version "+version+" waits for an approval", func(object *unstructured.Unstructured) (bool, error) {
		set, err := extensionset.From(object)
		if err != nil || set.Status.Phase != string(fleet.ReviewRequired) {
			return false, err
		}
		found, err = v.own.OlmV1alpha1().ClusterExtensionRollouts().Get(v.t.Context(), set.Status.Rollout, metav1.GetOptions{})
		return err == nil && len(found.Spec.Clusters) == 3 &&
			strings.Contains(string(found.Spec.Groups[0].Diff.Raw), fmt.Sprintf(`"new":%q`, version)), err
	})
	return found
}

// editor: a user approves the first wave and then edits the waves. That user cannot approve the
// next rollout.
func editor(v convoy) {
	asks := []string{"maxUnavailable: 2", "maxUnavailable: 2, approval: Required"}
	v.apply(v.alice, v.manifest(v.image("1", ""), asks...))
	v.approved(v.bob, 1)
	asked := v.rollout(1, "the second wave asks", func(r *olmv1alpha1.ClusterExtensionRollout) bool {
		return r.Status.Phase == string(fleet.ReviewRequired) && r.Status.Wave == "rest"
	})
	v.conflicts("the digest of the rollout approves a wave", v.approve(v.bob, asked, asked.Spec.Set.Digest))
	v.apply(v.bob, v.manifest(v.image("1", ""), "soakSeconds: 1", "soakSeconds: 2"))
	edited := v.rollout(2, "it waits for an approval", inPhase(fleet.ReviewRequired))
	if err := v.approve(v.bob, edited, edited.Status.Digest); !apierrors.IsForbidden(err) || edited.Spec.RequestedBy != v.bob.name {
		v.t.Errorf("bob approved a change by %s: %v", edited.Spec.RequestedBy, err)
	}
	v.conflicts("a wave of the rollout of before is approved", v.approve(v.bob, asked, asked.Status.Digest))
	v.have("1", "", "")
}
