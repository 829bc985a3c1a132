//go:build integration

package server_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// bomb returns a revision of one ConfigMap with a probe that would take hours without a bound.
func bomb(name string) string {
	digits := "[0,1,2,3,4,5,6,7,8,9]"
	expression := "self == self && self.data.p == self.data.p"
	for _, variable := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		expression = fmt.Sprintf("%s.all(%s, %s)", digits, variable, expression)
	}
	probe, err := json.Marshal(map[string]any{
		"selector":   map[string]any{"groupKind": map[string]any{"kind": "ConfigMap"}},
		"assertions": []any{map[string]any{"cel": map[string]any{"expression": expression, "message": "m"}}},
	})
	if err != nil {
		panic(err) // maps of strings
	}
	object := fmt.Sprintf(`{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"},"data":{"p":%q}}}`, name, strings.Repeat("x", 100_000))
	return strings.Replace(evil(name+"-1", object), `"phases":`, `"progressionProbes":[`+string(probe)+`],"phases":`, 1)
}

// bombs: expensive probes of one user do not block another user's rollouts. The status names the
// probe that is too expensive. Running probes end when their revision is deleted.
func (d door) bombs() {
	const bombs = 9 // one more than the number of workers
	for i := range bombs {
		d.MustKubectlInput(bomb(fmt.Sprint("bomb", i)), "create", "-f", "-")
	}
	d.MustKubectlInput(revisionOf("harmless", "default"), "create", "-f", "-")
	d.MustKubectl("wait", "--for=condition=Succeeded", "cer/harmless-1", poll.TimeoutFlag)
	for i := range bombs {
		name := fmt.Sprintf("bomb%d-1", i)
		eventually(d.t, "the verdict on "+name, func() error {
			return missing(d.MustKubectl("get", "cer", name, "-o", "json"), []string{"the expression costs more than 500000 units on this object"})
		})
		if got := d.MustKubectl("get", "cer", name, "-o", `jsonpath={.status.conditions[?(@.type=="Succeeded")].status}`); got == "True" {
			d.t.Errorf("%s has succeeded although the result of its probes is unknown", name)
		}
	}
	for i := range bombs {
		d.MustKubectl("delete", "cer", fmt.Sprintf("bomb%d-1", i), poll.TimeoutFlag)
	}
	d.MustKubectl("delete", "cer", "harmless-1", poll.TimeoutFlag)
}
