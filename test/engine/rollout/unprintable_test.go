//go:build integration

package rollout_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/accepted"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// TestUnprintable: what is read as YAML by the server is what the manifest says, also where
// JSON allows what YAML does not. Such an update is known to be accepted.
func TestUnprintable(t *testing.T) {
	t.Parallel()
	w := start(t)
	client, err := targetclient.New(targetclient.Options{Config: w.Config()})
	if err != nil {
		t.Fatal(err)
	}
	w.in(t).create(namespace("unprintable"))
	d := differential{t: t, client: client}
	object := func(value string) manifest.Object {
		m, err := manifest.Digester{SecretKey: []byte("key of the test")}.FromJSON([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"unprintable"},"data":{"a":"` + value + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	before := object("1")
	live, err := d.apply(before, targetclient.ApplyOptions{CreateOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	const text = "a\x7f\u0080  \u0085 \u009f\u00a0\ufeff\ufffe\uffff\u2028é"
	after := object(text)
	if verdict := accepted.Judge(after.Ref, before.JSON, after.JSON); verdict.Unknown != "" {
		t.Errorf("it is not known to be accepted: %s", verdict.Unknown)
	}
	if _, err := d.apply(after, targetclient.ApplyOptions{UID: live.UID, ResourceVersion: live.ResourceVersion}); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(w.get(after.Ref.ID).Object, "data", "a"); got != text {
		t.Errorf("the server has %q, want %q", got, text)
	}
}
