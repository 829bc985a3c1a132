package manifest

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzParse: no input panics. The canonical form is a fixed point, and the digest does not depend
// on the order of keys.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"y"}}`,
		`{"metadata":{"name":"a","annotations":{"a":"b"},"creationTimestamp":null},"kind":"B","apiVersion":"g.io/v1","spec":[1,-0.0,1e400,1e3,0.1,18446744073709551615]}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"},"stringData":{"\ud800":"\u2028<"}}`,
		`{"apiVersion":"v1","kind":"List","items":[{}]}`,
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a","labels":{"a":1}},"a":1,"a":2}`,
		`[`, `null`, "\xff", `{"metadata":null}`,
	} {
		f.Add([]byte(seed))
	}
	digester := Digester{SecretKey: []byte("key")}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := digester.FromJSON(data)
		if err != nil {
			if _, again := digester.FromJSON(data); again == nil || again.Error() != err.Error() {
				t.Fatalf("two errors for one input: %v, %v", err, again)
			}
			return
		}
		twice, err := digester.FromJSON(once.JSON)
		if err != nil {
			t.Fatalf("the canonical form %s is refused: %v", once.JSON, err)
		}
		if !bytes.Equal(once.JSON, twice.JSON) || once.Ref != twice.Ref {
			t.Fatalf("not a fixed point:\n%s\n%s", once.JSON, twice.JSON)
		}
		shuffled, err := digester.FromJSON(reversed(t, once.JSON))
		if err != nil {
			t.Fatal(err)
		}
		if shuffled.Digest != once.Digest {
			t.Fatalf("the digest depends on the order of keys: %s", once.JSON)
		}
	})
}

func reversed(t *testing.T, object []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	var members [][]byte
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		members = append([][]byte{append(append(encoded, ':'), value...)}, members...)
	}
	return append(append([]byte{'{'}, bytes.Join(members, []byte{','})...), '}')
}
