package revisiondiff

import (
	"context"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/access"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
)

// scope limits the parts of the revisions that a caller sees.
type scope struct {
	selection olm.ObjectSelection
	unified   bool
	// hidden holds the Secrets that the caller cannot get, selected or not.
	hidden map[manifest.ID]bool
}

// scope checks the caller's rights to the Secrets of revisions.
func (c *Comparer) scope(ctx context.Context, options *v1alpha1.RevisionDiffOptions, revisions ...*olm.ClusterExtensionRevision) (*scope, error) {
	s := &scope{unified: unified(options), hidden: map[manifest.ID]bool{}}
	if options != nil {
		s.selection = olm.SelectObjects(options.ObjectKind, options.ObjectNamespace, options.ObjectName)
	}
	caller, asked := access.New(c.deps.Authorizer), map[manifest.ID]bool{}
	for _, revision := range revisions {
		if revision == nil {
			continue
		}
		for _, ref := range clusterextensionrevision.Refs(revision) {
			if !ref.IsSecret() || asked[ref.ID] {
				continue
			}
			asked[ref.ID] = true
			allowed, err := caller.MayGetSecret(ctx, ref.Namespace, ref.Name)
			if err != nil {
				return nil, err
			}
			if !allowed {
				s.hidden[ref.ID] = true
			}
		}
	}
	return s, nil
}

func (s *scope) matches(id manifest.ID) bool {
	return s.selection.Matches(id.GroupKind(), id.Namespace, id.Name)
}

// shows reports whether an object is in the answer.
func (s *scope) shows(id manifest.ID) bool { return !s.hidden[id] && s.matches(id) }

func (s *scope) selected(objects []manifest.Object) []manifest.Object {
	var selected []manifest.Object
	for _, object := range objects {
		if s.shows(object.ID) {
			selected = append(selected, object)
		}
	}
	return selected
}
