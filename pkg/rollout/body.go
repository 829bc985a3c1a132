package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// Kinds reports whether kinds of the target cluster have a status. A Reader implements it.
type Kinds interface {
	HasStatus(ctx context.Context, kind schema.GroupVersionKind) (bool, error)
}

// Manifests renders the manifests of a chain for an apply, with the chain's marks.
type Manifests struct {
	Bodies Bodies
	Kinds  Kinds
	Names  observe.Names
	// Chain is the value of the chain label.
	Chain string
}

// Without returns the manifest of a step with the chain's marks and without yielded fields (see
// Entry.Yielded). Create-only objects get no marks, because they do not belong to the chain.
func (m Manifests) Without(ctx context.Context, step stage.Step, yielded []string) ([]byte, error) {
	if step.Policy.CreateOnly {
		return m.applied(ctx, step.Ref)
	}
	if len(yielded) == 0 {
		return m.marked(ctx, step.Ref)
	}
	wanted, err := m.Decoded(ctx, step.Ref)
	if err != nil {
		return nil, err
	}
	managedfields.Cut(wanted, yielded)
	body, err := json.Marshal(wanted)
	if err != nil {
		return nil, &bodyError{step.Ref, err}
	}
	return body, nil
}

// applied returns the manifest in the form in which it is applied, without marks.
func (m Manifests) applied(ctx context.Context, ref manifest.Ref) ([]byte, error) {
	raw, err := m.Bodies.Body(ctx, ref)
	if err != nil {
		return nil, &bodyError{ref, err}
	}
	return m.form(ctx, ref, raw)
}

// form converts a manifest into the form in which it is applied. It omits the status of a kind with
// the status subresource, because the API server ignores it. It fails for a kind that is not served
// yet.
func (m Manifests) form(ctx context.Context, ref manifest.Ref, raw []byte) ([]byte, error) {
	form, err := manifest.Applied(ref.ID, raw)
	if err != nil {
		return nil, &bodyError{ref, err}
	}
	without, has, err := manifest.WithoutStatus(form)
	if err != nil {
		return nil, &bodyError{ref, err}
	}
	if !has {
		return form, nil
	}
	ignored, err := m.Kinds.HasStatus(ctx, ref.GroupVersionKind())
	switch {
	case err != nil && !meta.IsNoMatchError(err):
		return nil, err
	case ignored:
		return without, nil
	}
	return form, nil
}

func (m Manifests) marked(ctx context.Context, ref manifest.Ref) ([]byte, error) {
	raw, err := m.applied(ctx, ref)
	if err != nil {
		return nil, err
	}
	marks := map[string]map[string]string{"annotations": {m.Names.AppliedAnnotation: string(ref.Digest)}}
	if label := m.Names.ChainLabel; label != "" {
		marks["labels"] = map[string]string{label: m.Chain}
	}
	marked, err := mark(raw, marks)
	if err != nil {
		return nil, &bodyError{ref, err}
	}
	return marked, nil
}

// Decoded returns the manifest with the chain's marks, decoded.
func (m Manifests) Decoded(ctx context.Context, ref manifest.Ref) (map[string]any, error) {
	body, err := m.marked(ctx, ref)
	if err != nil {
		return nil, err
	}
	return decode(ref, body)
}

func decode(ref manifest.Ref, body []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(body, &object); err != nil { // keeps integers as integers
		return nil, &bodyError{ref, err}
	}
	return object, nil
}

// otherwise returns a manifest as written and as applied if the two differ. It returns nil if they
// are equal, or the manifest does not exist any more.
func (m Manifests) otherwise(ctx context.Context, ref manifest.Ref) (written, applied map[string]any) {
	raw, err := m.Bodies.Body(ctx, ref)
	if err != nil {
		return nil, nil
	}
	body, err := m.form(ctx, ref, raw)
	if err != nil || bytes.Equal(body, raw) {
		return nil, nil
	}
	if written, err = decode(ref, raw); err == nil {
		applied, err = decode(ref, body)
	}
	if err != nil {
		return nil, nil
	}
	return written, applied
}

// mark adds entries to maps of strings in an object's metadata.
func mark(raw []byte, marks map[string]map[string]string) ([]byte, error) {
	var content, metadata map[string]json.RawMessage
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(content["metadata"], &metadata); err != nil {
		return nil, err
	}
	if metadata == nil {
		return nil, errors.New("it has no metadata")
	}
	for field, entries := range marks {
		var have map[string]string
		if raw, ok := metadata[field]; ok {
			if err := json.Unmarshal(raw, &have); err != nil {
				return nil, fmt.Errorf("metadata.%s: %w", field, err)
			}
		}
		all := maps.Clone(entries)
		for key, value := range have {
			if _, ours := entries[key]; !ours {
				all[key] = value
			}
		}
		var err error
		if metadata[field], err = json.Marshal(all); err != nil {
			return nil, err
		}
	}
	var err error
	if content["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	return json.Marshal(content)
}
