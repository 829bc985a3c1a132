package privilege

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/fairshare"
)

// inquiry finds out what the user of one request may do. Every question is asked
// once. There is no shortcut from "all" to "each": a cluster whose authorizers
// deny single objects must be asked about single objects.
type inquiry struct {
	authorizer authorizer.UnconditionalAuthorizer
	who        user.Info
	// asking bounds the questions of all requests that are open at a time: no user has more
	// of them than stay free for others.
	asking *fairshare.Pool

	mu sync.Mutex
	// answers are those of the request so far, also of what was checked for it before.
	answers map[authz.Right]bool
	asked   int
}

// all finds answers to questions. Any that is not answered is an error, never a
// "no" and never a "yes".
func (i *inquiry) all(ctx context.Context, questions []authz.Right) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(requestConcurrency)
	for _, question := range i.open(questions) {
		group.Go(func() error {
			if err := i.asking.Take(ctx, i.who.GetName(), 1); err != nil {
				return err
			}
			defer i.asking.Return(i.who.GetName(), 1)
			allowed, err := i.ask(ctx, question)
			if err != nil {
				return err
			}
			i.mu.Lock()
			defer i.mu.Unlock()
			i.answers[question] = allowed
			i.asked++
			return nil
		})
	}
	return group.Wait()
}

// open returns the questions that were not asked yet, each once.
func (i *inquiry) open(questions []authz.Right) []authz.Right {
	i.mu.Lock()
	defer i.mu.Unlock()
	var open []authz.Right
	seen := map[authz.Right]bool{}
	for _, question := range questions {
		if _, known := i.answers[question]; !known && !seen[question] {
			seen[question] = true
			open = append(open, question)
		}
	}
	return open
}

func (i *inquiry) ask(ctx context.Context, question authz.Right) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	decision, _, err := i.authorizer.Authorize(ctx, question.Of(i.who))
	switch {
	case err != nil:
		// An error beside an "allowed" would not matter to kube-apiserver. Here
		// it means that not everybody who has a say was heard.
		return false, &unansweredError{question: question, cause: err}
	default:
		return decision == authorizer.DecisionAllow, nil
	}
}

// may reports whether a right is known to be allowed. A right that was not checked is not.
func (i *inquiry) may(question authz.Right) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.answers[question]
}

func (i *inquiry) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// unansweredError reports that the cluster did not answer.
type unansweredError struct {
	question authz.Right
	cause    error
}

func (e *unansweredError) Error() string {
	return fmt.Sprintf("asking the cluster whether you may %s: %s", e.question, reasonOf(e.cause))
}

func (e *unansweredError) Unwrap() error { return e.cause }

func reasonOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}
