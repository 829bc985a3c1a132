package chart

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// GeneratedSecret is a Secret with randomly generated values. They are generated once. To keep
// them, pass the previous Secret to the next rendering.
type GeneratedSecret struct {
	Namespace, Name string
	// Previous is the Secret whose values are kept, as decoded JSON; nil the first time.
	Previous map[string]any
}

// readManifests parses the output of templates. With generated Secrets, the chart is rendered
// twice: only these Secrets may differ between the two renderings.
func (r Renderer) readManifests(ctx context.Context, answer template.Answer, out *source.Rendered) ([]directory.Located, error) {
	first, err := directory.ReadTexts(ctx, texts(answer.Manifests), unchecked(out))
	if err != nil || len(r.Options.Generated) == 0 {
		return first, err
	}
	second, err := directory.ReadTexts(ctx, texts(answer.Again), unchecked(&source.Rendered{}))
	if err != nil {
		return nil, err
	}
	if len(first) != len(second) {
		return nil, fmt.Errorf("the chart makes %d objects, and %d when it is rendered again: the objects must not depend on generated values", len(first), len(second))
	}
	for i := range first {
		if first[i].ID != second[i].ID {
			return nil, fail(first[i], "%s is %s when the chart is rendered again: names must not be generated", first[i].ID, second[i].ID)
		}
		if bytes.Equal(first[i].JSON, second[i].JSON) {
			continue
		}
		if first[i], err = r.carryOn(first[i], second[i].Object); err != nil {
			return nil, err
		}
	}
	return first, nil
}

// carryOn replaces the generated values of a Secret by its previous values.
func (r Renderer) carryOn(one directory.Located, again manifest.Object) (directory.Located, error) {
	declared := slices.IndexFunc(r.Options.Generated, func(secret GeneratedSecret) bool {
		namespace := one.Namespace
		if namespace == "" {
			namespace = r.Options.Namespace
		}
		return one.IsSecret() && secret.Name == one.Name && secret.Namespace == namespace
	})
	if declared < 0 {
		return one, fail(one, "%s is different each time that the chart is rendered: it has a generated value, and is not declared as a generated Secret; set the value, or declare the object if it is a Secret", one.ID)
	}
	content, err := decode(one.Object)
	if err != nil {
		return one, err
	}
	other, err := decode(again)
	if err != nil {
		return one, err
	}
	previous := r.Options.Generated[declared].Previous
	if err := carryData(content, other, previous); err != nil {
		return one, fail(one, "%s: %v", one.ID, err)
	}
	return changed(one, content)
}

// carryData replaces each generated value of a Secret by its previous value. A key without a
// previous value keeps the new value. Only values may be generated.
func carryData(content, again, previous map[string]any) error {
	had, err := valuesOf(previous)
	if err != nil {
		return fmt.Errorf("the Secret as it was: %w", err)
	}
	for _, field := range []string{"data", "stringData"} {
		values, _ := content[field].(map[string]any)
		others, _ := again[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if reflect.DeepEqual(values[key], others[key]) {
				continue
			}
			if _, isText := values[key].(string); !isText {
				return fmt.Errorf("%s.%s: has a generated value that is not text", field, key)
			}
			// From here on both renderings are equal, except for content that must not be
			// generated.
			if old, found := had[key]; found {
				values[key] = old
				if field == "data" {
					values[key] = base64.StdEncoding.EncodeToString([]byte(old))
				}
			}
			others[key] = values[key]
		}
	}
	if !reflect.DeepEqual(content, again) {
		return fmt.Errorf("has a generated value outside of data and stringData")
	}
	return nil
}

func valuesOf(secret map[string]any) (map[string]string, error) {
	out := map[string]string{}
	data, _ := secret["data"].(map[string]any)
	for key, value := range data {
		text, _ := value.(string)
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("data.%s: %w", key, err)
		}
		out[key] = string(decoded)
	}
	plain, _ := secret["stringData"].(map[string]any)
	for key, value := range plain {
		if text, ok := value.(string); ok {
			out[key] = text
		}
	}
	return out, nil
}
