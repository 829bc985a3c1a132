package fbc

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// FuzzRead: reading any file ends with named documents within the limits, or with an error that
// names the file.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"schema":"olm.package","name":"argocd","defaultChannel":"alpha","icon":{"base64data":"aGk=","mediatype":"image/png"}}`,
		`{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"b","replaces":"a","skips":["x"],"skipRange":">=1.0.0 <1.2.3"}]}` + "\n{}",
		`{"schema":"olm.bundle","package":"p","name":"b","image":"i","properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.0+7"}}]}`,
		`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"b"},"message":"m"}]}`,
		"---\n# c\n---\nschema: olm.package\nname: x\n---\nNAME: y\nschema: [1]\n", "{\"a\":\"\\\"}\"}{}---\n{}", "{\"Schema\":1,\"sCHEMA\":2}", "a: &a [*a]", "\x1f\x8b", "\x28\xb5\x2f\xfd", "{{{{", "]",
	} {
		f.Add([]byte(seed))
	}
	limits := Limits{DocumentBytes: 4 << 10, Bytes: 64 << 10, Documents: 100}
	f.Fuzz(func(t *testing.T, content []byte) {
		config := &Config{}
		err := Read(t.Context(), bytes.NewReader(content), "file", limits, func(d *Document) error {
			if len(d.JSON) > limits.DocumentBytes || d.Line < 1 {
				t.Fatalf("a document of %d bytes in line %d", len(d.JSON), d.Line)
			}
			return config.Add(d)
		})
		if typed := (&Error{}); err != nil && (!errors.As(err, &typed) || typed.File != "file") {
			t.Fatalf("an error without a file: %v", err)
		}
		for _, part := range config.ByPackage() {
			for i := range part.Bundles {
				if version, err := part.Bundles[i].Version(); err == nil {
					if again, err := ParseVersion(version.String()); err != nil || again.Compare(version) != 0 {
						t.Fatalf("version %s is printed as what is not the same: %v", version, err)
					}
				}
			}
		}
		for _, other := range config.Others {
			if !json.Valid(other.JSON) {
				t.Fatalf("kept what is no JSON: %q", other.JSON)
			}
		}
	})
}
