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

// inquiry checks the rights of the user of one request. It checks each right once. It does not
// conclude from a right on all objects to a right on one object, because authorizers can deny
// single objects.
type inquiry struct {
	authorizer authorizer.UnconditionalAuthorizer
	who        user.Info
	// asking bounds the concurrent checks of all requests. No user has more of them than remain
	// free for other users.
	asking *fairshare.Pool

	mu sync.Mutex
	// answers are the answers so far, including earlier checks of the same request.
	answers map[authz.Right]bool
	asked   int
}

// all checks rights. A check without an answer is an error, never a "no" or a "yes".
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

// open returns the rights that were not checked yet, each once.
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
		// kube-apiserver ignores an error that comes with "allowed". Here it means that an
		// authorizer did not answer, so the request is refused.
		return false, &unansweredError{question: question, cause: err}
	default:
		return decision == authorizer.DecisionAllow, nil
	}
}

// may reports whether a check allowed a right. It is false for a right that was not checked.
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
