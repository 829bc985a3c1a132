package governance

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestIntended: the result has only fields that the intent sets, or that were removed.
func TestIntended(t *testing.T) {
	object := func(spec string) *manifest.Object {
		made, err := manifest.Digester{}.FromJSON([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":` + spec + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return &made
	}
	was, is := object(`{"size":1,"gone":"x","deep":{"gone":{"a":1},"other":1},"list":[1],"other":1,"kind":{"a":1}}`), object(`{"size":2,"deep":{"other":2},"list":[1,2],"other":2,"kind":"text","new":1}`)
	before, after, err := Intended(was, is, []byte(`{"spec":{"size":2,"list":[1,2],"deep":{"made":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := string(object(`{"size":1,"gone":"x","deep":{"gone":{"a":1}},"list":[1]}`).JSON); string(before.JSON) != want {
		t.Errorf("before is\n%s, want\n%s", before.JSON, want)
	}
	if want := string(object(`{"size":2,"list":[1,2]}`).JSON); string(after.JSON) != want {
		t.Errorf("after is\n%s, want\n%s", after.JSON, want)
	}
	if before, after, err = Intended(nil, is, []byte(`{"spec":{"size":2}}`)); err != nil || before != nil || string(after.JSON) != string(object(`{"size":2}`).JSON) {
		t.Errorf("of a new target: %v, %s, %v", before, after.JSON, err)
	}
	if before, after, err = Intended(was, nil, nil); err != nil || before != was || after != nil {
		t.Errorf("of a deleted target: %v, %v, %v", before, after, err)
	}
}
