package storeguard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/penstock-project/penstock/pkg/store/identity"
)

// advice returns what to do about a store that the host does not know.
func (g *Guard) advice(token string, acceptable bool) string {
	const choice = "bring the right store back, or, to go on with this one and give up what it lacks, restart penstock"
	switch {
	case !acceptable:
		return "nothing is lost" + g.unhelpful()
	case g.accept == "":
		return fmt.Sprintf("%s with --accept-identity=%s", choice, token)
	default:
		return fmt.Sprintf("%s with another value of --accept-identity (the present value, %q, is for another decision): --accept-identity=%s", choice, g.accept, token)
	}
}

// unhelpful returns a note for a user who set --accept-identity where no value helps.
func (g *Guard) unhelpful() string {
	if g.accept == "" {
		return ""
	}
	return fmt.Sprintf("; the flag --accept-identity, which has the value %q, cannot help here", g.accept)
}

func matching(token string, acceptable bool) string {
	if !acceptable {
		return "none"
	}
	return token
}

// DegradedMessage returns the message that says why the store is not served, and how to repair
// that.
func DegradedMessage(reason, advice string) string {
	return fmt.Sprintf("Penstock serves nothing from its store, and changes nothing in the cluster: %s. What to do: %s", reason, advice)
}

// decisionToken names one decision: to serve this store despite this witness. The decision changes
// the witness. So a forgotten flag does not accept the next loss as well.
func decisionToken(state identity.State, observed identity.Observed, mark *identity.Mark) string {
	seen := identity.Mark{}
	if mark != nil {
		seen = *mark
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s\n%d", state, observed.ID, observed.Epoch, seen.StoreID, seen.HighWater))
	return hex.EncodeToString(sum[:6])
}

func (g *Guard) howToMend(ctx context.Context) string {
	const remove = "or delete it, if you are certain that this is the store of this cluster: Penstock then creates it again"
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	observed, err := g.store.Observe(ctx)
	if err != nil || !observed.Found || observed.ID == "" {
		return "restore its content, " + remove
	}
	return fmt.Sprintf("restore its content (this store has the storeID %s and the format %d, and is at etcd revision %d; highWater may be any number up to that), %s",
		observed.ID, observed.Format, observed.Revision, remove)
}
