package app

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

type cluster struct {
	answers []error
	tests   int
	posts   bool
}

func (c *cluster) SelfTest(context.Context) error {
	err := c.answers[min(c.tests, len(c.answers)-1)]
	c.tests++
	if err == nil {
		c.posts = false
	}
	return err
}

func (c *cluster) UsePosts() { c.posts = true }

func TestSelfTest(t *testing.T) {
	away := errors.New("connection refused")
	forbidden := fmt.Errorf("testing: %w", &targetclient.UntestableError{Answer: errors.New("no")})
	cases := map[string]struct {
		reason  string
		answers []error
		tests   int
		posts   bool
	}{
		"Known":            {"once is enough", []error{nil}, 1, false},
		"Forbidden":        {"asking again does not help, and POST works anyway", []error{forbidden}, 1, true},
		"Away":             {"what passes is waited for", []error{away, away, nil}, 3, false},
		"AwayAndForbidden": {"also until the answer is no", []error{away, forbidden}, 2, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &cluster{answers: tc.answers}
			again := selfTest(t.Context(), c, wait.Backoff{Duration: time.Millisecond, Steps: 1})
			if (again != nil) != (tc.tests > 1) {
				t.Fatalf("%s: try again: %t", tc.reason, again != nil)
			}
			if again != nil {
				if !c.posts {
					t.Errorf("%s: what is not known is relied on", tc.reason)
				}
				if err := again(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if c.tests != tc.tests || c.posts != tc.posts {
				t.Errorf("%s: %d tests, posts %t; want %d, %t", tc.reason, c.tests, c.posts, tc.tests, tc.posts)
			}
		})
	}
}

func TestSelfTestEndsWithTheTerm(t *testing.T) {
	c := &cluster{answers: []error{errors.New("connection refused")}}
	again := selfTest(t.Context(), c, wait.Backoff{Duration: time.Hour, Steps: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := again(ctx); err != nil {
		t.Errorf("the end of a term is an error: %v", err)
	}
}
