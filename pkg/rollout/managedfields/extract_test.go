package managedfields

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TestExtract: the result has exactly the fields of a manager.
func TestExtract(t *testing.T) {
	object := `{"kind":"D","metadata":{"name":"d","labels":{"a":"1","b":"2"},"finalizers":["x","y"]},
		"spec":{"replicas":3,"selector":{"app":"d"},"containers":[
			{"name":"one","image":"i","ports":[{"containerPort":80,"protocol":"TCP","name":"http"}]},
			{"name":"two","image":"j"}],"args":["-v","-w"]}}`
	for name, tc := range map[string]struct{ set, want string }{
		"a field":                  {set: `{"f:spec":{"f:replicas":{}}}`, want: `{"spec":{"replicas":3}}`},
		"a whole map":              {set: `{"f:spec":{"f:selector":{}}}`, want: `{"spec":{"selector":{"app":"d"}}}`},
		"one of a map":             {set: `{"f:metadata":{"f:labels":{".":{},"f:b":{}}}}`, want: `{"metadata":{"labels":{"b":"2"}}}`},
		"an element of a set":      {set: `{"f:metadata":{"f:finalizers":{"v:\"y\"":{}}}}`, want: `{"metadata":{"finalizers":["y"]}}`},
		"a whole list":             {set: `{"f:spec":{"f:args":{}}}`, want: `{"spec":{"args":["-v","-w"]}}`},
		"an item by its index":     {set: `{"f:spec":{"f:args":{"i:1":{}}}}`, want: `{"spec":{"args":["-w"]}}`},
		"a field of an item":       {set: `{"f:spec":{"f:containers":{"k:{\"name\":\"two\"}":{"f:image":{}}}}}`, want: `{"spec":{"containers":[{"image":"j","name":"two"}]}}`},
		"an item in an item":       {set: `{"f:spec":{"f:containers":{"k:{\"name\":\"one\"}":{".":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:protocol":{}}}}}}}`, want: `{"spec":{"containers":[{"name":"one","ports":[{"containerPort":80,"protocol":"TCP"}]}]}}`},
		"what is not there":        {set: `{"f:spec":{"f:paused":{},"f:containers":{"k:{\"name\":\"six\"}":{"f:image":{}}}}}`, want: `{"spec":{"containers":[]}}`},
		"what was a map elsewhere": {set: `{"f:spec":{"f:replicas":{"f:x":{}}}}`, want: `{"spec":{"replicas":3}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var content, want map[string]any
			set := &fieldpath.Set{}
			for into, raw := range map[*map[string]any]string{&content: object, &want: tc.want} {
				if err := json.Unmarshal([]byte(raw), into); err != nil {
					t.Fatal(err)
				}
			}
			if err := set.FromJSON(strings.NewReader(tc.set)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, Extract(content, set)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
