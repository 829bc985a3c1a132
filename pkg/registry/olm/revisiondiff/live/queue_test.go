package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestQueue: previews run while there is room. A preview that gets no room in time gets a
// Retry-After.
func TestQueue(t *testing.T) {
	cases := map[string]struct {
		reason  string
		inside  []int
		objects int
		// leaves is the time at which all admitted previews leave; 0 means never.
		leaves  time.Duration
		refused bool
		after   time.Duration
	}{
		"Alone":    {reason: "the largest has room alone", objects: objectsAtOnce},
		"Enormous": {reason: "what is larger than all there is comes in alone", objects: objectsAtOnce + 1},
		"Beside":   {reason: "small ones go on beside each other", inside: []int{13, 13}, objects: 13},
		"Nothing":  {reason: "what asks nothing counts too", inside: []int{objectsAtOnce}, refused: true, after: maxWait},
		"Turn":     {reason: "it waits for its turn", inside: []int{objectsAtOnce}, objects: objectsAtOnce, leaves: 3 * time.Second, after: 3 * time.Second},
		"Full":     {reason: "nobody waits a minute to be told that the cluster is busy", inside: []int{objectsAtOnce - 12}, objects: 13, refused: true, after: maxWait},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue()
				var inside []func()
				for _, objects := range tc.inside {
					inside = append(inside, mustEnter(t, q, objects))
				}
				if tc.leaves > 0 {
					go func() {
						time.Sleep(tc.leaves)
						for _, leave := range inside {
							leave()
						}
					}()
				}
				began := time.Now()
				leave, err := q.enter(t.Context(), tc.objects)
				if waited := time.Since(began); waited != tc.after {
					t.Errorf("%s: waited %s, want %s", tc.reason, waited, tc.after)
				}
				if !tc.refused {
					if err != nil {
						t.Fatalf("%s: %v", tc.reason, err)
					}
					leave()
					return
				}
				if seconds, retry := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !retry || seconds != retrySeconds {
					t.Errorf("%s: %v, want 429 and when to ask again", tc.reason, err)
				}
			})
		})
	}
}

// TestSmallOnesPassBy: a waiting large preview does not block small previews that have room.
func TestSmallOnesPassBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		first := mustEnter(t, q, objectsAtOnce/2)
		entered := make(chan error)
		go func() {
			leave, err := q.enter(t.Context(), objectsAtOnce)
			if err == nil {
				defer leave()
			}
			entered <- err
		}()
		synctest.Wait()
		mustEnter(t, q, 13)()
		first()
		if err := <-entered; err != nil {
			t.Errorf("nobody was left inside: %v", err)
		}
	})
}

// TestNobodyWaitsWhoIsGone: a disconnected client takes no place in the queue.
func TestNobodyWaitsWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		leave := mustEnter(t, q, objectsAtOnce)
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := q.enter(ctx, 1)
			gone <- err
		}()
		synctest.Wait()
		hangUp()
		if err := <-gone; err == nil {
			t.Error("it was let in")
		}
		leave()
		mustEnter(t, q, objectsAtOnce)()
	})
}

func mustEnter(t *testing.T, q *queue, objects int) (leave func()) {
	t.Helper()
	leave, err := q.enter(t.Context(), objects)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}
