package extension

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// writeStatus says what came of a pass, when that is not what is said already. The write is
// refused when the object has changed meanwhile: its watch brings another pass.
func (v *visit) writeStatus(ctx context.Context, outcome status.Outcome) error {
	next := status.Of(v.facts(outcome))
	if v.byHelm {
		next.ActiveRevisions = nil // a release has no revisions that can be read there
	}
	if status.Same(v.extension.Status, next) {
		return nil
	}
	changed, err := extension.WithStatus(v.object, next)
	if err != nil {
		return err
	}
	_, err = v.Extensions.Resource(extension.Resource).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of ClusterExtension %s: %w", v.extension.Name, err)
	}
	for _, one := range status.Events(v.extension.Status, next) {
		kind := corev1.EventTypeNormal
		if one.Warning {
			kind = corev1.EventTypeWarning
		}
		v.Events.Event(v.object, kind, one.Reason, one.Note)
	}
	return nil
}

// facts are what status tells.
func (v *visit) facts(outcome status.Outcome) status.Facts {
	facts := status.Facts{Extension: v.extension, Outcome: outcome, Now: v.Clock.Now()}
	for i := range v.revisions {
		facts.Revisions = append(facts.Revisions, &v.revisions[i])
	}
	if u := v.upgrades; u != nil {
		facts.Upgrades = &status.Upgrades{Newest: u.Newest}
		if u.Comes() {
			facts.Upgrades.Allowed = u.Allowed
		}
		for _, one := range u.Blocked {
			facts.Upgrades.Blocked = append(facts.Upgrades.Blocked, status.BlockedVersion{Version: one.Version, Why: one.Why})
		}
	}
	if v.answer != nil {
		facts.Deprecations = v.deprecations()
	}
	return facts
}

// deprecations are those of the catalog that won.
func (v *visit) deprecations() *status.Deprecations {
	out := &status.Deprecations{}
	add := func(to *[]string, one *fbc.Deprecation) {
		if one != nil {
			*to = append(*to, one.Message)
		}
	}
	said := v.answer.Deprecation
	add(&out.Package, said.Package)
	for i := range said.Channels {
		add(&out.Channels, &said.Channels[i])
	}
	if name, _ := v.installedBundle(); name != "" {
		out.Installed = v.deprecationsOf(name)
	}
	return out
}

// deprecationsOf are those of a bundle in the catalog that won, which may be another bundle
// than the one that was resolved.
func (v *visit) deprecationsOf(bundle string) []string {
	var messages []string
	for _, one := range v.catalogs.ForResolver(v.extension.Spec.Source.Catalog.PackageName) {
		if one.Name != v.answer.Catalog || one.Config == nil {
			continue
		}
		for _, all := range one.Config.Deprecations {
			for _, entry := range all.Entries {
				if entry.Reference.Schema == fbc.SchemaBundle && entry.Reference.Name == bundle {
					messages = append(messages, entry.Message)
				}
			}
		}
	}
	return messages
}
