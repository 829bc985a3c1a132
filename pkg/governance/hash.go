package governance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// PlanHash returns the hash of a plan. It covers the desired state of each target, the target as
// Penstock found it, the impact that a reviewer sees, the terms (window, end, required profiles,
// number of approvers), and the digest of the definition. definition is empty for a built-in
// profile. The hash does not cover messages, notes and states.
func PlanHash(spec v1alpha1.ConfigurationPlanSpec, items []v1alpha1.PlanItem, definition string) string {
	type hashed struct {
		Name, Digest, Fingerprint string
		Target                    v1alpha1.TargetRef
		Action                    v1alpha1.ItemAction
		Impact                    v1alpha1.ImpactSeverity
		Blast                     *v1alpha1.BlastRadius
		Takes                     []v1alpha1.TakenFields
	}
	content := make([]hashed, len(items))
	for i, item := range items {
		content[i] = hashed{item.Name, item.Digest, item.Fingerprint, item.TargetRef, item.Action, item.ImpactSeverity, item.BlastRadius, item.Takes}
	}
	if bound := termsOf(spec); bound != (terms{}) || definition != "" {
		return digest("plan", struct {
			Items      []hashed
			Definition string `json:",omitempty"`
			terms
		}{content, definition, bound})
	}
	return digest("plan", content)
}

// SnapshotHash returns the hash of the targets as Penstock found them.
func SnapshotHash(items []v1alpha1.PlanItem) string {
	content := make(map[string]string, len(items))
	for _, item := range items {
		target := item.TargetRef
		content[fmt.Sprintf("%s/%s/%s/%s", target.APIVersion, target.Kind, target.Namespace, target.Name)] = item.Fingerprint
	}
	return digest("snapshot", content)
}

// InputsHash returns the hash of the fields of spec from which a plan is computed, and of the terms
// that PlanHash covers.
func InputsHash(spec v1alpha1.ConfigurationPlanSpec) string {
	return digest("inputs", struct {
		Profile    v1alpha1.ProfileName
		OnConflict v1alpha1.ConflictPolicy
		Options    *v1alpha1.PlanOptions
		RestoreRun int64
		terms
	}{spec.Profile, spec.OnConflict, spec.Options, spec.RestoreRun, termsOf(spec)})
}

// Outdated reports whether the plan would have other items or manifests today. Both arguments map
// names of items to digests of manifests.
func Outdated(planned, today map[string]string) bool { return !maps.Equal(planned, today) }

// digest hashes the JSON of content, which has sorted keys.
func digest(kind string, content any) string {
	raw, err := json.Marshal([]any{"penstock/" + kind + "/1", content})
	if err != nil {
		panic(err) // content has only strings, numbers and maps
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}
