package expression

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// listUnits and mapUnits are the memory cost of an empty list and an empty map, in units.
const listUnits, mapUnits = 2, 8

// json converts a value to JSON types. It charges while it walks (see payFor).
func (m *CostBudget) json(value ref.Val) (out any, err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case interpreter.EvalCancelledError:
			out, err = nil, ErrCost
		default:
			panic(problem)
		}
	}()
	return m.jsonAt(value, "")
}

// jsonAt is json for a value at a path, which errors name.
func (m *CostBudget) jsonAt(value ref.Val, path string) (any, error) {
	m.pay(1)
	switch value := value.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(value), nil
	case types.Int:
		return int64(value), nil
	case types.Uint:
		if value > math.MaxInt64 {
			return nil, notJSON(path, "a number above "+strconv.Itoa(math.MaxInt64))
		}
		return int64(value), nil
	case types.Double:
		if f := float64(value); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return nil, notJSON(path, "no finite number")
	case types.String:
		m.pay(textUnits(len(value)))
		if !utf8.ValidString(string(value)) {
			return nil, notJSON(path, "text that is not UTF-8")
		}
		return string(value), nil
	case traits.Mapper:
		return m.jsonObject(value, path)
	case traits.Lister:
		return m.jsonList(value, path)
	default:
		return nil, notJSON(path, "of type "+value.Type().TypeName())
	}
}

func (m *CostBudget) jsonList(list traits.Lister, path string) (any, error) {
	m.pay(listUnits)
	out := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		within, err := m.jsonAt(it.Next(), path+"["+strconv.Itoa(len(out))+"]")
		if err != nil {
			return nil, err
		}
		out = append(out, within)
	}
	return out, nil
}

func (m *CostBudget) jsonObject(object traits.Mapper, path string) (any, error) {
	m.pay(mapUnits)
	out := map[string]any{}
	for it := object.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, isText := key.(types.String)
		if !isText {
			return nil, notJSON(path, "a map with keys of type "+key.Type().TypeName())
		}
		m.pay(1 + textUnits(len(name)))
		within, err := m.jsonAt(object.Get(key), path+"."+string(name))
		if err != nil {
			return nil, err
		}
		out[string(name)] = within
	}
	return out, nil
}

func notJSON(path, what string) error {
	if path == "" {
		path = "it"
	}
	return fmt.Errorf("the expression makes a value that no object has: %.256s is %s", path, what)
}
