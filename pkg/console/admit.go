package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/console/screens"
)

// key is the secret that a browser sends on loopback: its holder is the user of the kubeconfig.
type key struct {
	sum   [sha256.Size]byte
	clock clock.PassiveClock

	mu sync.Mutex
	// wrong holds the times of wrong keys in the last second.
	wrong []time.Time
}

func newKey(is string, clock clock.PassiveClock) *key {
	return &key{sum: sha256.Sum256([]byte(is)), clock: clock}
}

// admit compares the key. It counts wrong keys, and refuses more than a few per second with 429.
func (k *key) admit(r *http.Request) *screens.Refusal {
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), bearerPrefix)
	sum := sha256.Sum256([]byte(given))
	right := subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1
	if bearer && right {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	k.wrong = slices.DeleteFunc(k.wrong, func(at time.Time) bool { return now.Sub(at) >= time.Second })
	if len(k.wrong) >= maxWrongKeys {
		return &screens.Refusal{Status: http.StatusTooManyRequests, Reason: "Key", Message: "too many wrong keys"}
	}
	k.wrong = append(k.wrong, now)
	return &screens.Refusal{Status: http.StatusUnauthorized, Reason: "Key", Message: "the key of this console is missing or wrong: open the address that kubectl penstock console prints"}
}

// bearerPrefix begins the Authorization header of a request.
const bearerPrefix = "Bearer "

// admitToken refuses requests without a token: the cluster would treat them as system:anonymous. It
// also refuses requests with two tokens, because a proxy may have checked only one of them. The
// cluster itself checks the token.
func admitToken(r *http.Request) *screens.Refusal {
	shown := r.Header.Values("Authorization")
	if len(shown) == 1 && tokenOf(r) != "" {
		return nil
	}
	return &screens.Refusal{Status: http.StatusUnauthorized, Reason: "Token", Message: "a token of the cluster is required, as Authorization: Bearer"}
}

// tokenOf returns the token of a request; empty without a valid token.
func tokenOf(r *http.Request) string {
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), bearerPrefix)
	if !bearer || len(given) > maxToken || strings.ContainsFunc(given, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return given
}
