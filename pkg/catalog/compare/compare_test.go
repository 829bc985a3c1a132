package compare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

const before = `
{"schema":"olm.package","name":"gone"}
{"schema":"olm.package","name":"same"}
{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"v1"},{"name":"v2","replaces":"v1"}]}
{"schema":"olm.channel","package":"p","name":"old","entries":[{"name":"v1"}]}
{"schema":"olm.bundle","package":"p","name":"v1","image":"one","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"v2","image":"two","properties":[{"type":"olm.package","value":{"packageName":"p","version":"2.0.0"}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.package"},"message":"m"}]}
`

const after = `
{"schema":"olm.package","name":"new"}
{"schema":"olm.package","name":"same"}
{"schema":"olm.package","name":"p","defaultChannel":"b"}
{"schema":"olm.channel","package":"p","name":"b","entries":[{"name":"v3","replaces":"v2"}]}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"v2"}]}
{"schema":"olm.bundle","package":"p","name":"v3","image":"three","properties":[{"type":"olm.package","value":{"packageName":"p","version":"3.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"v2","image":"other","properties":[{"type":"olm.package","value":{"version":"2.0.0","packageName":"p"}}]}
`

func TestCompare(t *testing.T) {
	load := func(content string) *fbc.Config {
		config, err := fbc.Load(t.Context(), strings.NewReader(content), "c", fbc.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	var b strings.Builder
	if err := Compare(load(before), load(after)).Text(&b); err != nil {
		t.Fatal(err)
	}
	want := `new: new package
gone: removed package
p:
  default channel: b, was a
  new channels: b
  removed channels: old
  new versions: 3.0.0
  removed versions: 1.0.0
  changed content: 2.0.0
  no longer deprecated: the package
  a new installation: 3.0.0, before: 2.0.0
  with 2.0.0 installed: 3.0.0, before: stays
  with 1.0.0 installed: nowhere: nothing succeeds it, before: 2.0.0 (stuck)
  a new installation in channel old: nothing, before: 1.0.0 (stuck)
  with 1.0.0 installed in channel old: nowhere: nothing succeeds it, before: stays (stuck)
  with 1.0.0 installed in channel a: nowhere: nothing succeeds it, before: 2.0.0 (stuck)
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// An extension that was refused for another reason before is not stuck because of the change.
	const refused = `{"schema":"olm.package","name":"p","defaultChannel":"a"}
{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"v1"}]}
{"schema":"olm.bundle","package":"p","name":"v1","properties":[{"type":"olm.package","value":{"version":"1"}}]}`
	empty := `{"schema":"olm.package","name":"p"}
{"schema":"olm.bundle","package":"p","name":"v1","properties":[{"type":"olm.package","value":{"version":"x"}}]}`
	b.Reset()
	if err := Compare(load(refused), load(empty)).Text(&b); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "default channel: none, was a\n") || strings.Contains(got, "(stuck)") {
		t.Errorf("got\n%s", got)
	}
	shuffled := load(before)
	shuffled.Bundles[0], shuffled.Bundles[1] = shuffled.Bundles[1], shuffled.Bundles[0]
	if changes := Compare(load(before), shuffled); !changes.Empty() {
		t.Errorf("another order is a difference: %+v", changes)
	}
}
