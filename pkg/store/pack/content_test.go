package pack

import (
	"errors"
	"slices"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func TestRoot(t *testing.T) {
	a := manifest.Ref{ID: manifest.ID{Kind: "ConfigMap", Name: "a"}, Digest: "sha256:a"}
	b := manifest.Ref{ID: manifest.ID{Kind: "ConfigMap", Name: "b"}, Digest: "sha256:b"}
	joined := manifest.Ref{Digest: "sha256:a\n8:sha256:b"}
	elsewhere := manifest.Ref{ID: manifest.ID{Kind: "Other", Name: "a"}, Digest: "sha256:a"}
	cases := map[string]struct {
		reason string
		x, y   []manifest.Ref
		same   bool
	}{
		"Equal":     {reason: "it is a function of its argument", x: []manifest.Ref{a, b}, y: []manifest.Ref{a, b}, same: true},
		"Order":     {reason: "the order of objects is content", x: []manifest.Ref{a, b}, y: []manifest.Ref{b, a}},
		"Subset":    {reason: "one object less is another pack", x: []manifest.Ref{a, b}, y: []manifest.Ref{a}},
		"Empty":     {reason: "no objects are a pack, too", x: nil, y: []manifest.Ref{}, same: true},
		"Duplicate": {reason: "the same content counts once", x: []manifest.Ref{a, b, a}, y: []manifest.Ref{a, b}, same: true},
		"Identity":  {reason: "the digest covers the identity already", x: []manifest.Ref{a}, y: []manifest.Ref{elsewhere}, same: true},
		"Framing":   {reason: "a digest cannot look like two", x: []manifest.Ref{a, b}, y: []manifest.Ref{joined}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Root(tc.x) == Root(tc.y); got != tc.same {
				t.Errorf("%s: same root is %v, want %v", tc.reason, got, tc.same)
			}
		})
	}
	const pinned = "sha256:198a3e5f92e1a50a6ccadb5d676a228b21ab498b152be6f733cc04c534e84c3f"
	if got := Root([]manifest.Ref{a, b}); got != pinned {
		t.Errorf("roots are stored and must not change: got %s, want %s", got, pinned)
	}
}

func TestEncodeRefuses(t *testing.T) {
	good := object(t, "ConfigMap", "a", "1")
	other := object(t, "ConfigMap", "a", "2")
	wrong := manifest.Object{Ref: good.Ref, JSON: other.JSON}
	secret := object(t, "Secret", "s", "1")

	var mismatch *manifest.MismatchError
	var large *TooLargeError
	cases := map[string]struct {
		reason  string
		store   *Store
		objects []manifest.Object
		want    func(error) bool
	}{
		"WrongBytes": {
			reason:  "a pack that nobody could read is not written",
			store:   New(nil, "/p", digester()),
			objects: []manifest.Object{wrong},
			want:    func(err error) bool { return errors.As(err, &mismatch) },
		},
		"WrongBytesAgain": {
			reason:  "a digest that was seen with its bytes does not vouch for others",
			store:   New(nil, "/p", digester()),
			objects: []manifest.Object{good, wrong},
			want:    func(err error) bool { return errors.As(err, &mismatch) },
		},
		"NoKey": {
			reason:  "without the key a Secret's digest cannot be checked",
			store:   New(nil, "/p", manifest.Digester{}),
			objects: []manifest.Object{secret},
			want:    func(err error) bool { return errors.Is(err, manifest.ErrNoSecretKey) },
		},
		"TooLarge": {
			reason:  "the limit is for all objects together",
			store:   New(nil, "/p", digester(), MaxBytes(len(good.JSON)+len(secret.JSON)-1)),
			objects: []manifest.Object{good, secret},
			want:    func(err error) bool { return errors.As(err, &large) },
		},
		"JustFits": {
			reason:  "the limit itself is allowed",
			store:   New(nil, "/p", digester(), MaxBytes(len(good.JSON)+len(secret.JSON))),
			objects: []manifest.Object{good, secret, good},
			want:    func(err error) bool { return err == nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, _, err := tc.store.encode(tc.objects); !tc.want(err) {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
		})
	}
}

// FuzzOpen: no bytes of a pack cause a panic or take memory beyond the limit. No returned bodies
// fail to match the root.
func FuzzOpen(f *testing.F) {
	s := New(nil, "/p", digester(), MaxBytes(1<<16))
	objects := []manifest.Object{object(f, "ConfigMap", "a", "1"), object(f, "Secret", "b", "2")}
	root, content, err := s.encode(objects)
	if err != nil {
		f.Fatal(err)
	}
	whole, err := seal(content, ChunkBytes)
	if err != nil {
		f.Fatal(err)
	}
	parts, err := seal(content, 100)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole.record)
	f.Add(parts.record)
	delta, err := sealDelta(content, &found{content: content}, whole)
	if err != nil || delta == nil {
		f.Fatalf("content is no delta against itself: %v", err)
	}
	f.Add(delta)
	f.Fuzz(func(t *testing.T, record []byte) {
		h, frame, err := parseRecord("/key", record)
		if err != nil || len(h.chunks) > 0 {
			return
		}
		says, err := ParseRecord("/key", record)
		if err != nil || (says.Base != "") != (h.base != nil) || (says.Format == formatDelta) != (h.base != nil) {
			t.Errorf("the record is %+v, error %v", says, err)
		}
		content, err := h.open(frame, content, 1<<16)
		if err != nil {
			return
		}
		got, err := s.decode(root, content)
		if err == nil && (len(got) != 2 || Root(refs(got)) != root) {
			t.Errorf("got %d objects that are not those of the pack", len(got))
		}
	})
}

func FuzzSplit(f *testing.F) {
	_, content, err := New(nil, "/p", digester()).encode([]manifest.Object{object(f, "ConfigMap", "a", "1")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte("\x02[]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		before := slices.Clone(content)
		objects, err := split(content)
		if err != nil {
			return
		}
		var total int
		for _, o := range objects {
			if o.Digest.Validate() != nil {
				t.Errorf("got the digest %q", o.Digest)
			}
			total += len(o.JSON)
		}
		if total > len(content) || !slices.Equal(before, content) {
			t.Errorf("%d bytes of bodies come out of %d", total, len(content))
		}
	})
}
