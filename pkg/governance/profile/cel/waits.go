package cel

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// Waits returns the conditions that an item waits for, with the present facts. item names an item
// of the approved plan, even if the present facts would leave it out.
func (p *Profile) Waits(item string, facts profile.Facts, options *v1alpha1.PlanOptions) ([]profile.Wait, error) {
	for i, one := range p.spec.Items {
		if one.Name != item || len(one.Waits) == 0 {
			continue
		}
		e, err := p.evaluate(facts, valuesOf(options), maxUnits)
		if err != nil {
			return nil, err
		}
		return e.waits(i), nil
	}
	return nil, nil
}

func (e *evaluation) waits(i int) []profile.Wait {
	var waits []profile.Wait
	for j, one := range e.spec.Items[i].Waits {
		at := field.NewPath("items").Index(i).Child(fmt.Sprintf("waits[%d].expression", j))
		saying := field.NewPath("items").Index(i).Child(fmt.Sprintf("waits[%d].messageExpression", j))
		waits = append(waits, profile.Wait{Message: one.Message, Judge: func(live map[string]any) (bool, string, error) {
			// Each evaluation has a new budget, because a wait is evaluated many times.
			now := e.anew(maxWaitUnits)
			names := map[string]any{"live": any(live)}
			if live == nil {
				names["live"] = nil
			}
			message := one.Message
			if one.MessageExpression != "" {
				if said, err := now.value(saying, names); err == nil {
					if text, ok := said.(string); ok {
						message = clip(text)
					}
				}
			}
			holds, err := now.value(at, names)
			return holds == true, message, err
		}})
	}
	return waits
}
