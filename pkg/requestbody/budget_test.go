package requestbody

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const kib = 1 << 10

func TestBudget(t *testing.T) {
	budget := NewBudget(1000 * kib)
	set := func(s *Share, bytes int64, refused func(error) bool) {
		t.Helper()
		if err := s.Set(bytes); (err != nil) != (refused != nil) || err != nil && !refused(err) {
			t.Errorf("setting %d KiB for %s: %v", bytes/kib, s.user, err)
		}
	}
	huge, second := budget.Share("alice"), budget.Share("bob")
	set(huge, 1000*kib, nil)
	set(second, 1, apierrors.IsTooManyRequests)
	set(huge, 500*kib, nil)
	set(second, 251*kib, apierrors.IsTooManyRequests)
	set(second, 250*kib, nil)
	set(huge, 600*kib, apierrors.IsTooManyRequests)
	set(budget.Share("alice"), 1, apierrors.IsTooManyRequests)
	second.GiveBack()
	set(huge, 2000*kib, nil)
	set(huge, 2000*kib+1, apierrors.IsRequestEntityTooLargeError)
	huge.GiveBack()
	huge.GiveBack()
	set(budget.Share("carol"), 1000*kib, nil)
}

// TestReadCountsWhatCame: only the received bytes of a body count, not the announced length. A body
// is refused only when the budget is used up.
func TestReadCountsWhatCame(t *testing.T) {
	const size = 64 << 20
	budget := NewBudget(DefaultBudget)
	var shares []*Share
	for range 100 {
		req := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("{"), breaksOff{}))
		req.ContentLength = size
		share := budget.Share("mallory")
		if _, _, err := Read(req, size, share); !apierrors.IsBadRequest(err) {
			t.Fatal(err)
		}
		shares = append(shares, share)
		if share.weight > 0 {
			t.Fatalf("a body of which one byte is here has %d bytes of the budget", share.weight)
		}
	}
	var held int64
	for _, share := range shares {
		held += share.weight
	}
	if held > DefaultBudget/2 {
		t.Errorf("one user holds %d", held)
	}
	body := strings.Repeat("x", 20<<20)
	for _, announced := range []int64{int64(len(body)), -1} {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		req.ContentLength = announced
		alice := budget.Share("alice")
		got, complete, err := Read(req, size, alice)
		if err != nil || !complete || string(got) != body {
			t.Errorf("announced %d: %d bytes, complete %t: %v", announced, len(got), complete, err)
		}
		alice.GiveBack()
	}
}

// TestReadIsFair: the bodies of one user get at most half of the budget. Other users get the rest.
func TestReadIsFair(t *testing.T) {
	budget := NewBudget(8 << 20)
	body := strings.Repeat("x", 1<<20)
	read := func(user string) (*Share, error) {
		share := budget.Share(user)
		_, _, err := Read(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), 0, share)
		return share, err
	}
	var held int64
	for range 10 {
		share, err := read("mallory")
		if err != nil && !apierrors.IsTooManyRequests(err) {
			t.Fatal(err)
		}
		if err != nil {
			share.GiveBack()
		}
		held += share.weight
	}
	if held < 2<<20 || held > 4<<20 {
		t.Errorf("mallory holds %d bytes, half of the budget are %d", held, 4<<20)
	}
	if _, err := read("alice"); err != nil {
		t.Errorf("alice cannot send hers: %v", err)
	}
}

// TestUnfinished: bodies that stop arriving take no places of other users. Their senders get an
// error.
func TestUnfinished(t *testing.T) {
	budget := NewBudget(8 << 20)
	var ends []func()
	for range unfinished / 2 {
		done, err := budget.begin(t.Context(), "mallory")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := budget.begin(soon, "mallory"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("one more of the same user: %v", err)
	}
	if _, err := budget.begin(t.Context(), "alice"); err != nil {
		t.Errorf("another user: %v", err)
	}
	for _, end := range ends {
		end()
	}
	if _, err := budget.begin(t.Context(), "mallory"); err != nil {
		t.Errorf("when the others are there: %v", err)
	}
}

type breaksOff struct{}

func (breaksOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
