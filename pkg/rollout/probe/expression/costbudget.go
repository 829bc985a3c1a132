package expression

import (
	"net/url"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// CostBudget counts the cost of evaluations, in units. It may count several consecutive
// evaluations. A unit is the cost of reading one value, less than 100 ns; docs/reference/limits.md
// has measurements.
//
// A step is charged before it is executed, by the sizes of its arguments and its result. So no step
// can take more time or memory than the remaining budget.
type CostBudget struct {
	limit, spent uint64
	slow         bool
}

// NewCostBudget returns a budget of the given number of units. Evaluations that need more units
// fail.
func NewCostBudget(units uint64) *CostBudget { return &CostBudget{limit: units} }

// Spent returns the units that were charged, at most the limit.
func (m *CostBudget) Spent() uint64 { return min(m.spent, m.limit) }

// Left returns the units that may still be charged.
func (m *CostBudget) Left() uint64 { return m.limit - m.Spent() }

// Spend charges units outside of evaluations, and reports whether the budget had them.
func (m *CostBudget) Spend(units uint64) bool {
	if units > m.Left() {
		m.spent = m.limit + 1
		return false
	}
	m.spent += units
	return true
}

// Exhausted reports whether more units were needed than the limit.
func (m *CostBudget) Exhausted() bool { return m.spent > m.limit }

// Slow reports whether an evaluation was ended because it took too long. It may be faster another
// time.
func (m *CostBudget) Slow() bool { return m.slow }

// Weigh charges the units of a JSON value and its contents. It returns false if the budget has too
// few units left.
func (m *CostBudget) Weigh(value any) (left bool) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case interpreter.EvalCancelledError:
			left = false
		default:
			panic(problem)
		}
	}()
	m.payFor(value)
	return true
}

// pay charges units. If too few are left, it ends the evaluation as the library's own limit does.
func (m *CostBudget) pay(units uint64) {
	if !m.Spend(units) {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "the limit of units was reached"})
	}
}

const bytesPerUnit = 10

func textUnits(bytes int) uint64 { return uint64(bytes) / bytesPerUnit }

// payFor charges a value with its contents, and returns its size in units. It charges while it
// walks, so that a small value that contains the same value many times cannot take more time than
// the remaining budget.
func (m *CostBudget) payFor(value any) uint64 {
	before := m.spent
	m.payWithin(value)
	return m.spent - before
}

func (m *CostBudget) payWithin(value any) {
	m.pay(1)
	switch value := value.(type) {
	case string:
		m.pay(textUnits(len(value)))
	case map[string]any:
		for key, within := range value {
			m.pay(1 + textUnits(len(key)))
			m.payWithin(within)
		}
	case []any:
		for _, within := range value {
			m.payWithin(within)
		}
	case types.String:
		m.pay(textUnits(len(value)))
	case types.Bytes:
		m.pay(textUnits(len(value)))
	case *types.Optional:
		if value.HasValue() {
			m.payWithin(value.GetValue())
		}
	case apiservercel.URL:
		m.payForURL(value.URL)
	case apiservercel.Semver:
		m.pay(textUnits(len(value.Version.String())))
	case traits.Mapper:
		m.payWithinMap(value)
	case traits.Lister:
		m.payWithinList(value)
	}
}

func (m *CostBudget) payForURL(value *url.URL) {
	if value != nil {
		m.pay(textUnits(len(value.Host) + len(value.Path) + len(value.RawPath) + len(value.RawQuery) + len(value.Opaque) + len(value.Fragment)))
	}
}

// payWithinList walks a list in its stored form, which is faster than iterating over CEL values.
func (m *CostBudget) payWithinList(list traits.Lister) {
	if _, grows := list.(traits.MutableLister); !grows {
		switch stored := list.Value().(type) {
		case []any:
			m.payWithin(stored)
			return
		case []ref.Val:
			for _, within := range stored {
				m.payWithin(within)
			}
			return
		}
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		m.pay(1)
		m.payWithin(it.Next())
	}
}

func (m *CostBudget) payWithinMap(object traits.Mapper) {
	if stored, isStored := object.Value().(map[string]any); isStored {
		m.payWithin(stored)
		return
	}
	m.pay(length(object))
	for it := object.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		m.payWithin(key)
		m.payWithin(object.Get(key))
	}
}

// length returns the number of elements of a list or a map, and 0 for other values.
func length(value ref.Val) uint64 {
	switch value.(type) {
	case traits.Lister, traits.Mapper:
		if n, ok := value.(traits.Sizer).Size().(types.Int); ok && n > 0 {
			return uint64(n)
		}
	}
	return 0
}
