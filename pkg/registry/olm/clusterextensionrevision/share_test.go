package clusterextensionrevision

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

func TestExceeds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                    string
		free, adds, user, chainOf int64
		want                      string
	}{
		"Little":    {"it stays below what is free", 50, 5, 40, 0, ""},
		"User":      {"the user would have more than is free", 50, 5, 41, 0, ShareOfUser},
		"Chain":     {"several users share a chain", 50, 5, 1, 46, ShareOfChain},
		"Both":      {"the user can do something about it", 50, 5, 46, 46, ShareOfUser},
		"Nothing":   {"a user without anything gets the first bytes", 1, 5, 0, 0, ""},
		"NothingIn": {"the chain of others is full all the same", 50, 5, 0, 46, ShareOfChain},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := exceeds(tc.free, tc.adds, tc.user, tc.chainOf); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestSharesLeaveRoom: in random writes by many users, no user uses more than remains free. So a
// user without revisions always has room, and no user fills the store.
func TestSharesLeaveRoom(t *testing.T) {
	const quota = 1 << 20
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		used, users := int64(0), make([]int64, 1+random.IntN(6))
		for range 2000 {
			i, adds := random.IntN(len(users)), 1+random.Int64N(quota/64)
			if whose, _ := exceeds(quota-used, adds, users[i], 0); whose != "" || users[i] == 0 && adds > quota-used {
				continue
			}
			if first := users[i] == 0; !first && users[i]+adds > quota-used-adds {
				t.Fatalf("a user has %d, and others only %d", users[i]+adds, quota-used-adds)
			}
			users[i] += adds
			used += adds
		}
		if used >= quota {
			t.Fatalf("%d users filled the store: %v", len(users), users)
		}
	}
}

// TestUsed: the share of a user and of a chain counts each pack once. Each revision is read once,
// and forgotten after its deletion. An unreadable size does not count as 0.
func TestUsed(t *testing.T) {
	revision := func(name, user string, objects ...string) olm.ClusterExtensionRevision {
		out := olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		out.Status.RequestedBy = &olm.Requester{Username: user}
		phase := olm.RevisionPhase{Name: "all"}
		for _, object := range objects {
			phase.Objects = append(phase.Objects, olm.RevisionObject{APIVersion: "v1", Kind: "ConfigMap", Name: object, Digest: fmt.Sprintf("sha256:%064x", object)})
		}
		out.Spec.Phases = []olm.RevisionPhase{phase}
		return out
	}
	reads, broken := 0, false
	shares := &Shares{Size: func(context.Context, string) (int64, error) {
		if reads++; broken {
			return 0, errors.New("no answer")
		}
		return 1000, nil
	}}
	chains := map[string][]olm.ClusterExtensionRevision{
		"a": {revision("a-1", "bob", "x"), revision("a-2", "bob", "x"), revision("a-3", "eve", "y")},
		"b": {revision("b-1", "bob", "z")},
	}
	record := recordOf(&chains["a"][0])
	for range 2 {
		byUser, byChain, err := shares.used(t.Context(), chains, "bob", "a")
		if err != nil || byUser != 2000+3*record || byChain != 2000+3*record {
			t.Errorf("bob has %d, a has %d, %v; want 2 packs and 3 records for each", byUser, byChain, err)
		}
	}
	if reads != 4 {
		t.Errorf("%d sizes were read, want one for each revision", reads)
	}
	delete(chains, "a")
	if byUser, byChain, err := shares.used(t.Context(), chains, "bob", "a"); err != nil || byUser != 1000+record || byChain != 0 || len(shares.known) != 1 {
		t.Errorf("bob has %d, a has %d, %d are known, %v", byUser, byChain, len(shares.known), err)
	}
	chains["c"], broken = []olm.ClusterExtensionRevision{revision("c-1", "bob", "w")}, true
	if _, _, err := shares.used(t.Context(), chains, "bob", "a"); err == nil {
		t.Error("a size that is unknown counts for nothing")
	}
}
