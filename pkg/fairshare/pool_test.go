package fairshare

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestShares: one user gets half, and two users get a third each. Some amount is always left for
// the next user.
func TestShares(t *testing.T) {
	p := NewPool(60)
	fill := func(user string) int64 {
		got := int64(0)
		for p.TryTake(user, 1) {
			got++
		}
		return got
	}
	for i, want := range []int64{30, 15, 7, 4, 2, 1} {
		if got := fill(fmt.Sprint("mallory-", i)); got != want {
			t.Errorf("user %d got %d, want %d: half of what was left", i, got, want)
		}
	}
	p.Return("mallory-0", 30)
	if got := fill("alice"); got != 15 {
		t.Errorf("after 30 were returned alice got %d of 31, want 15", got)
	}
}

// TestAlone: a single user may have the whole pool until another user takes a part.
func TestAlone(t *testing.T) {
	p := NewPool(60)
	if !p.TryTake("alice", 20) || !p.TryTakeAlone("alice", 20, 40) {
		t.Error("alice is alone and does not get everything")
	}
	p.Return("alice", 40)
	if !p.TryTake("bob", 1) || p.TryTakeAlone("alice", 20, 30) {
		t.Error("alice gets nearly everything beside bob")
	}
	if p.TryTakeAlone("alice", 0, 61) {
		t.Error("alice got more than there is")
	}
}

// TestTurns: users are served in turn, independent of the number of their waiting requests. A
// request that is cancelled takes nothing.
func TestTurns(t *testing.T) {
	p := NewPool(6)
	if !p.TryTake("mallory", 3) || !p.TryTake("trent", 1) || !p.TryTake("bob", 1) {
		t.Fatal("the pool is not divided as expected")
	}
	served := make(chan string)
	ask := func(user string) {
		before := waiting(p)
		go func() {
			if err := p.Take(t.Context(), user, 1); err != nil {
				t.Error(err)
			}
			served <- user
		}()
		for waiting(p) == before {
			runtime.Gosched() // The goroutine is about to wait.
		}
	}
	ask("mallory")
	ask("mallory")
	ask("bob")
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := p.Take(gone, "trent", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	p.Return("trent", 1)
	p.Return("mallory", 2)
	got := []string{<-served, <-served}
	slices.Sort(got)
	if !slices.Equal(got, []string{"bob", "mallory"}) || waiting(p) != 1 {
		t.Errorf("%v were served, %d wait; want each user once", got, waiting(p))
	}
	p.Return("bob", 2)
	if got := <-served; got != "mallory" {
		t.Errorf("%s was served", got)
	}
}

// TestFirst: a user gets a place even when many other users keep theirs.
func TestFirst(t *testing.T) {
	p := NewPool(4)
	ended, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 20 {
		user := fmt.Sprint("mallory-", i)
		for p.TryTake(user, 1) {
			continue
		}
		if err := p.Take(ended, fmt.Sprint("alice-", i), 1); err != nil {
			t.Errorf("number %d has no place: %v", i, err)
		}
	}
}

func waiting(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, requests := range p.waiting {
		n += len(requests)
	}
	return n
}

// TestPool: for random requests, users take no more than the pool has, and no user gets more than
// was left. At the end, the pool is empty.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPool(rapid.Int64Range(1, 100).Draw(t, "size"))
		has := map[string][]int64{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			user := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "user")
			if held := has[user]; len(held) > 0 && rapid.Bool().Draw(t, "return") {
				p.Return(user, held[0])
				has[user] = held[1:]
				continue
			}
			amount := rapid.Int64Range(0, 40).Draw(t, "amount")
			if p.TryTake(user, amount) {
				has[user] = append(has[user], amount)
				if p.users[user] > p.size-p.used {
					t.Fatalf("%s has %d, %d of %d are left", user, p.users[user], p.size-p.used, p.size)
				}
			}
		}
		for user, held := range has {
			for _, amount := range held {
				p.Return(user, amount)
			}
		}
		if p.used != 0 || len(p.users) != 0 {
			t.Fatalf("%d are used by %v when all was returned", p.used, p.users)
		}
	})
}
