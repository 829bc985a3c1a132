package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// body is the manifest with our marks.
func (p *pass) body(ctx context.Context, ref manifest.Ref) ([]byte, error) {
	raw, err := p.Bodies.Body(ctx, ref)
	if err != nil {
		return nil, &bodyError{ref, err}
	}
	marks := map[string]map[string]string{"annotations": {p.engine.Names.AppliedAnnotation: string(ref.Digest)}}
	if label := p.engine.Names.ChainLabel; label != "" {
		marks["labels"] = map[string]string{label: p.who.Chain}
	}
	marked, err := mark(raw, marks)
	if err != nil {
		return nil, &bodyError{ref, err}
	}
	return marked, nil
}

// decoded is the manifest with our marks, as it is and as a tree.
func (p *pass) decoded(ctx context.Context, ref manifest.Ref) ([]byte, map[string]any, error) {
	body, err := p.body(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	var wanted map[string]any
	if err := utiljson.Unmarshal(body, &wanted); err != nil { // which keeps whole numbers whole
		return nil, nil, &bodyError{ref, err}
	}
	return body, wanted, nil
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
