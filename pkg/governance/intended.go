package governance

import (
	"encoding/json"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Intended reduces two states of a target to the fields that an intent sets, and the fields that
// the second state lacks. A nil object means that the target does not exist. Without an intent it
// returns both unchanged.
func Intended(was, is *manifest.Object, intent []byte) (before, after *manifest.Object, err error) {
	if intent == nil {
		return was, is, nil
	}
	var trees [3]map[string]any
	for i, raw := range [][]byte{bodyOf(was), bodyOf(is), intent} {
		if raw == nil {
			continue
		}
		if err := json.Unmarshal(raw, &trees[i]); err != nil {
			return nil, nil, fmt.Errorf("reading a target: %w", err)
		}
	}
	old, next := setFields(trees[0], trees[1], trees[2])
	if before, err = named(was, old); err != nil {
		return nil, nil, err
	}
	after, err = named(is, next)
	return before, after, err
}

func bodyOf(object *manifest.Object) []byte {
	if object == nil {
		return nil
	}
	return object.JSON
}

// setFields does the same as Intended for the fields of an object. It keeps lists whole.
func setFields(was, is, intent map[string]any) (before, after map[string]any) {
	before, after = map[string]any{}, map[string]any{}
	keep := func(key string) {
		old, had := was[key]
		next, has := is[key]
		want, sets := intent[key]
		oldMap, oldIsMap := old.(map[string]any)
		nextMap, nextIsMap := next.(map[string]any)
		wantMap, wantIsMap := want.(map[string]any)
		if (oldIsMap || !had) && (nextIsMap || !has) && (wantIsMap || !sets) {
			oldPart, nextPart := setFields(oldMap, nextMap, wantMap)
			if len(oldPart) > 0 {
				before[key] = oldPart
			}
			if len(nextPart) > 0 {
				after[key] = nextPart
			}
			return
		}
		if !sets && (has || !had) {
			return
		}
		if had {
			before[key] = old
		}
		if has {
			after[key] = next
		}
	}
	for key := range was {
		keep(key)
	}
	for key := range is {
		if _, done := was[key]; !done {
			keep(key)
		}
	}
	return before, after
}
