package extension

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// writeStatus writes the outcome of a pass to the status if it changed. After a conflict, the watch
// causes another pass.
func (s *scope) writeStatus(ctx context.Context, outcome *maker.Outcome) error {
	next := status.Of(s.facts(outcome))
	if s.byHelm {
		next.ActiveRevisions = nil // the revisions of a release cannot be read as revisions
	}
	if status.Same(s.extension.Status, next) {
		return nil
	}
	changed, err := extension.WithStatus(s.object, next)
	if err != nil {
		return err
	}
	_, err = s.Extensions.Resource(extension.Resource).UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldManager: FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of ClusterExtension %s: %w", s.extension.Name, err)
	}
	for _, one := range status.Events(s.extension.Status, next) {
		kind := corev1.EventTypeNormal
		if one.Warning {
			kind = corev1.EventTypeWarning
		}
		s.Events.Event(s.object, kind, one.Reason, one.Note)
	}
	return nil
}

func (s *scope) facts(outcome *maker.Outcome) status.Facts {
	facts := status.Facts{Extension: s.extension, Now: s.Clock.Now(), Undecided: s.undecided()}
	facts.Outcome = status.Outcome{Result: resultOf(outcome), Message: outcome.Message, Why: outcome.Why, Bundle: s.resolved}
	if facts.Outcome.Result == status.Settled {
		facts.Outcome.Message, facts.Outcome.Later = "", s.later
	}
	for i := range s.Revisions {
		facts.Revisions = append(facts.Revisions, &s.Revisions[i])
	}
	if u := s.upgrades; u != nil {
		facts.Upgrades = &status.Upgrades{Newest: u.Newest}
		if u.Comes() {
			facts.Upgrades.Allowed = u.Allowed
		}
		for _, one := range u.Blocked {
			facts.Upgrades.Blocked = append(facts.Upgrades.Blocked, status.BlockedVersion{Version: one.Version, Why: one.Why})
		}
	}
	if s.answer != nil {
		facts.Deprecations = s.deprecations()
	}
	return facts
}

func (s *scope) deprecations() *status.Deprecations {
	out := &status.Deprecations{}
	add := func(to *[]string, one *fbc.Deprecation) {
		if one != nil {
			*to = append(*to, one.Message)
		}
	}
	said := s.answer.Deprecation
	add(&out.Package, said.Package)
	for i := range said.Channels {
		add(&out.Channels, &said.Channels[i])
	}
	if name, _ := s.installedBundle(); name != "" {
		out.Installed = s.deprecationsOf(name)
	}
	return out
}

// deprecationsOf returns the deprecations of a bundle in the selected catalog. The bundle may
// differ from the resolved one.
func (s *scope) deprecationsOf(bundle string) []string {
	var messages []string
	for _, one := range s.catalogs.ForResolver(s.extension.Spec.Source.Catalog.PackageName) {
		if one.Name != s.answer.Catalog || one.Config == nil {
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
