package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// apply computes the new manifest from the old one and the field changes. It uses only the paths
// and JSON values that a reader of the changes sees.
func apply(t difftest.TB, old *manifest.Object, changes []FieldChange) *manifest.Object {
	t.Helper()
	decoded := decode(t, old.JSON)
	edits := &edits{fields: map[string]*edits{}}
	for i := range changes {
		steps, err := parsePath(changes[i].Path)
		if err != nil {
			t.Fatalf("path %s: %v", changes[i].Path, err)
		}
		at := edits
		for _, step := range steps {
			at = at.below(step)
		}
		at.changes = append(at.changes, &changes[i])
	}
	result, err := json.Marshal(edits.apply(t, decoded))
	if err != nil {
		t.Fatal(err)
	}
	made := *old
	made.Digest, made.JSON = "", result
	return &made
}

func decode(t difftest.TB, data []byte) any {
	t.Helper()
	var value any
	if len(data) == 0 {
		return nil
	}
	// UnmarshalCaseSensitivePreserveInts needs a map, and a value may be any JSON.
	var holder map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(`{"value":`+string(data)+`}`), &holder); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	value = holder["value"]
	return value
}

// edits is a tree of changes by the steps of their paths.
type edits struct {
	step    string
	order   []string
	fields  map[string]*edits
	changes []*FieldChange
}

func (e *edits) below(step string) *edits {
	next := e.fields[step]
	if next == nil {
		next = &edits{step: step, fields: map[string]*edits{}}
		e.fields[step] = next
		e.order = append(e.order, step)
	}
	return next
}

// pick returns the change with an operation at this position.
func (e *edits) pick(op Op) *FieldChange {
	for _, c := range e.changes {
		if c.Op == op {
			return c
		}
	}
	return nil
}

func (e *edits) apply(t difftest.TB, value any) any {
	if c := e.pick(Replace); c != nil {
		return decode(t, c.New)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, step := range e.order {
			below, name := e.fields[step], stepName(step)
			switch {
			case below.pick(Add) != nil:
				v[name] = decode(t, below.pick(Add).New)
			case below.pick(Remove) != nil:
				delete(v, name)
			default:
				v[name] = below.apply(t, v[name])
			}
		}
		return v
	case []any:
		if strings.Contains(strings.Join(e.order, ""), "=") || e.pick(Reorder) != nil {
			return e.applyKeyed(t, v)
		}
		return e.applyIndexed(t, v)
	}
	t.Fatalf("changes below %v, which has nothing below: %v", value, e.order)
	return nil
}

// applyIndexed: indexes of removals refer to the old list, all other indexes to the new list.
func (e *edits) applyIndexed(t difftest.TB, list []any) []any {
	removed, added := map[int]bool{}, map[int]any{}
	for _, step := range e.order {
		i, err := strconv.Atoi(strings.Trim(step, "[]"))
		if err != nil {
			t.Fatal(err)
		}
		if e.fields[step].pick(Remove) != nil {
			removed[i] = true
		}
		if c := e.fields[step].pick(Add); c != nil {
			added[i] = decode(t, c.New)
		}
	}
	result := []any{}
	for i, item := range list {
		for {
			value, ok := added[len(result)]
			if !ok {
				break
			}
			result = append(result, value)
		}
		if !removed[i] {
			result = append(result, item)
		}
	}
	for {
		value, ok := added[len(result)]
		if !ok {
			break
		}
		result = append(result, value)
	}
	for _, step := range e.order {
		i, _ := strconv.Atoi(strings.Trim(step, "[]"))
		below := e.fields[step]
		if len(below.order) > 0 || below.pick(Replace) != nil || below.pick(Reorder) != nil {
			result[i] = below.apply(t, result[i])
		}
	}
	return result
}

func (e *edits) applyKeyed(t difftest.TB, list []any) []any {
	result := slices.Clone(list)
	var added []*FieldChange
	for _, step := range e.order {
		below := e.fields[step]
		if c := below.pick(Add); c != nil {
			added = append(added, c)
			continue
		}
		i := findItem(t, result, step)
		if below.pick(Remove) != nil {
			result = slices.Delete(result, i, i+1)
		} else {
			result[i] = below.apply(t, result[i])
		}
	}
	slices.SortStableFunc(added, func(a, b *FieldChange) int { return *a.Index - *b.Index })
	for _, c := range added {
		result = slices.Insert(result, min(*c.Index, len(result)), decode(t, c.New))
	}
	if c := e.pick(Reorder); c != nil {
		var sorted []any
		for _, key := range decode(t, c.New).([]any) {
			sorted = append(sorted, result[findKey(t, result, key, e.keyName())])
		}
		result = sorted
	}
	return result
}

// keyName is for a list that is only reordered. Its keys are given as values, so the key is the
// only field that has all of these values.
func (e *edits) keyName() string {
	for _, step := range e.order {
		name, _, _ := strings.Cut(strings.Trim(step, "[]"), "=")
		return name
	}
	return ""
}

// findItem returns the index of the item with the keys of a step, such as [a=1,b="x"], or with the
// value of [="x"]. An item may omit a key with a default.
func findItem(t difftest.TB, list []any, step string) int {
	rest := strings.TrimPrefix(step, "[")
	want := map[string]any{}
	for rest != "]" {
		name, value, _ := strings.Cut(rest, "=")
		decoder := json.NewDecoder(strings.NewReader(value))
		decoder.UseNumber()
		var decoded any
		if err := decoder.Decode(&decoded); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		want[name] = decoded
		rest = strings.TrimPrefix(value[decoder.InputOffset():], ",")
	}
	if value, ok := want[""]; ok {
		return slices.IndexFunc(list, func(item any) bool { return fmt.Sprint(item) == fmt.Sprint(value) })
	}
	return findMap(t, list, want)
}

func findMap(t difftest.TB, list []any, want map[string]any) int {
	for _, absentMatches := range []bool{false, true} {
		for i, item := range list {
			fields, _ := item.(map[string]any)
			matches := true
			for name, value := range want {
				has, ok := fields[name]
				matches = matches && (ok && fmt.Sprint(has) == fmt.Sprint(value) || !ok && absentMatches)
			}
			if matches {
				return i
			}
		}
	}
	t.Fatalf("no item %v in %v", want, list)
	return -1
}

func findKey(t difftest.TB, list []any, key any, name string) int {
	if keys, ok := key.(map[string]any); ok {
		return findMap(t, list, keys)
	}
	for i, item := range list {
		fields, _ := item.(map[string]any)
		if name != "" && fmt.Sprint(fields[name]) == fmt.Sprint(key) {
			return i
		}
		for _, candidate := range []string{"name", "key", "id", "mountPath", "path", "host", "ip", "type", "topologyKey"} {
			if name == "" && fields[candidate] != nil {
				if fmt.Sprint(fields[candidate]) == fmt.Sprint(key) {
					return i
				}
				break
			}
		}
	}
	t.Fatalf("no item with key %v (%s) in %v", key, name, list)
	return -1
}

func stepName(step string) string {
	if name, ok := strings.CutPrefix(step, "."); ok {
		return name
	}
	name, _, _ := unquotePrefix(step[1:])
	return name
}

func parsePath(path string) ([]string, error) {
	var steps []string
	for rest := path; rest != ""; {
		end := 1
		switch rest[0] {
		case '.':
			for end < len(rest) && rest[end] != '.' && rest[end] != '[' {
				end++
			}
		case '[':
			for end < len(rest) && rest[end] != ']' {
				if rest[end] == '"' {
					_, behind, err := unquotePrefix(rest[end:])
					if err != nil {
						return nil, err
					}
					end = len(rest) - len(behind)
					continue
				}
				end++
			}
			end++
		default:
			return nil, fmt.Errorf("found %q", rest)
		}
		steps = append(steps, rest[:end])
		rest = rest[end:]
	}
	return steps, nil
}

// unquotePrefix parses a JSON string at the start of s.
func unquotePrefix(s string) (value, rest string, err error) {
	decoder := json.NewDecoder(strings.NewReader(s))
	if err := decoder.Decode(&value); err != nil {
		return "", "", fmt.Errorf("found %q, want a quoted string", s)
	}
	return value, s[decoder.InputOffset():], nil
}
