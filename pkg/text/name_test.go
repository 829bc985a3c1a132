package text

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestName: different identities have different names, even if their parts joined by a hyphen are
// equal. Each name is a DNS label within the length.
func TestName(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		var out strings.Builder
		for range 1 + random.IntN(4) {
			out.WriteByte("ab-.B\xff"[random.IntN(6)])
		}
		return strings.Repeat(out.String(), 1+random.IntN(20)*random.IntN(2))
	}
	named := map[string][]string{}
	for range 50_000 {
		identity := make([]string, 1+random.IntN(4))
		for i := range identity {
			identity[i] = strings.ToValidUTF8(word(), "?")
		}
		most := 18 + random.IntN(46)
		name := Name(52, strings.Join(identity, "-"), identity...)
		if other, taken := named[name]; taken && !slices.Equal(other, identity) {
			t.Fatalf("%q and %q are both %s", other, identity, name)
		}
		named[name] = identity
		for limit, one := range map[int]string{52: name, most: Name(most, word(), identity...)} {
			if problems := validation.IsDNS1123Label(one); len(problems) > 0 || len(one) > limit {
				t.Fatalf("%q is %q, of at most %d: %v", identity, one, limit, problems)
			}
		}
	}
	if got := Name(52, "lamp-house-hall", "lights.example.com", "Lamp", "house", "hall"); got != "lamp-house-hall-"+got[len(got)-16:] {
		t.Errorf("got %s: the beginning is readable", got)
	}
}
