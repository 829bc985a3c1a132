package storemove

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/penstock-project/penstock/pkg/store/identity"
)

// TestParcel: a snapshot in several parts is read back unchanged. Parts of different moves are
// refused.
func TestParcel(t *testing.T) {
	content := make([]byte, 10_000) // random, so that compression does not make it one part
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(content)
	for name, tc := range map[string]struct {
		reason string
		before func(*testing.T, secrets)
		want   string
	}{
		"Whole":   {reason: "nobody touched it"},
		"Missing": {reason: "somebody deleted a part", before: deletes(2), want: "penstock-moved-store-2"},
		"Changed": {reason: "a part has other content", before: edits(func(data, _ map[string]string) { data[partKey] += "x" }), want: "have the digest"},
		"Foreign": {reason: "a part is of another move", before: edits(func(_, annotations map[string]string) { annotations[digestAnnotation] = "other" }), want: "belongs to another move"},
		"Damaged": {reason: "an annotation is no number", before: edits(func(_, annotations map[string]string) { annotations[epochAnnotation] = "x" }), want: `"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := secrets{api: fake.NewClientset().CoreV1().Secrets("penstock-system"), partBytes: 1000}
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
			// The earlier move left more parts.
			for _, bytes := range [][]byte{append(content, content...), content} {
				if err := os.WriteFile(from, bytes, 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := s.put(t.Context(), from, "store", 3); err != nil {
					t.Fatal(err)
				}
			}
			if tc.before != nil {
				tc.before(t, s)
			}
			found, there, err := s.find(t.Context())
			if err != nil || !there || found.Parts < 10 || found.StoreID != "store" || found.Epoch != 3 {
				t.Fatalf("found %+v, %t, %v", found, there, err)
			}
			err = s.take(t.Context(), found, to)
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.want)
			case tc.want != "":
				return
			}
			if arrived, err := os.ReadFile(to); err != nil || !bytes.Equal(arrived, content) {
				t.Errorf("%s: %d bytes arrived, of %d: %v", tc.reason, len(arrived), len(content), err)
			}
			if err := s.remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left, err := s.api.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
				t.Errorf("left are %d Secrets, %v", len(left.Items), err)
			}
		})
	}
}

func deletes(part int) func(*testing.T, secrets) {
	return func(t *testing.T, s secrets) {
		if err := s.api.Delete(t.Context(), secretName(part), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// edits changes a part other than the first.
func edits(edit func(data, annotations map[string]string)) func(*testing.T, secrets) {
	return func(t *testing.T, s secrets) {
		found, err := s.api.Get(t.Context(), secretName(4), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		data := map[string]string{partKey: string(found.Data[partKey])}
		edit(data, found.Annotations)
		found.Data[partKey] = []byte(data[partKey])
		if _, err := s.api.Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTooLarge: a store that does not fit is refused before anything is written.
func TestTooLarge(t *testing.T) {
	s := secrets{api: fake.NewClientset().CoreV1().Secrets("penstock-system"), partBytes: 1}
	file := filepath.Join(t.TempDir(), "from")
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz!?()[]{}<>"), 3), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.put(t.Context(), file, "store", 1); err == nil || !strings.Contains(err.Error(), "at most 64 can be moved") {
		t.Errorf("got %v", err)
	}
	if left, err := s.api.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("left are %d Secrets, %v", len(left.Items), err)
	}
}

// TestExpected: the witness vouches for the content, and not only for the store that the Secrets
// name.
func TestExpected(t *testing.T) {
	mark := identity.Mark{StoreID: "store", Epoch: 3, Moved: "digest"}
	raised, _ := mark.Raised(1)
	for name, tc := range map[string]struct {
		parcel parcel
		mark   identity.Mark
		want   bool
	}{
		"Moved":   {parcel{StoreID: "store", Epoch: 3, Digest: "digest"}, mark, true},
		"Forged":  {parcel{StoreID: "store", Epoch: 3, Digest: "another"}, mark, false},
		"Earlier": {parcel{StoreID: "store", Epoch: 2, Digest: "digest"}, mark, false},
		"Taken":   {parcel{StoreID: "store", Epoch: 3, Digest: "digest"}, raised, false},
		"None":    {parcel{StoreID: "store", Epoch: 3}, identity.Mark{StoreID: "store", Epoch: 3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.parcel.isExpected(&tc.mark); got != tc.want {
				t.Errorf("it is expected: %v", got)
			}
		})
	}
}
