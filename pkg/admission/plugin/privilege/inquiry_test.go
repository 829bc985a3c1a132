package privilege

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/fairshare"
	"github.com/penstock-project/penstock/pkg/right"
)

// Users whose questions are not answered, under however many names, keep nobody else's
// from being asked.
func TestQuestionsAreFair(t *testing.T) {
	asking := fairshare.NewPool(totalConcurrency)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	questions := make([]right.Right, 4*requestConcurrency)
	for i := range questions {
		questions[i] = right.Right{Verb: "create", Resource: fmt.Sprint(i)}
	}
	began := make(chan struct{}, 1<<10)
	silent := authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
		began <- struct{}{}
		<-ctx.Done()
		return authorizer.DecisionDeny, "", ctx.Err()
	})
	for n := range 10 {
		who := &user.DefaultInfo{Name: fmt.Sprint("mallory-", n)}
		for range userConcurrency {
			i := &inquiry{authorizer: silent, who: who, asking: asking, answers: map[right.Right]bool{}}
			running.Go(func() {
				if err := i.all(ctx, questions); err == nil {
					t.Error("questions without an answer were answered")
				}
			})
		}
	}
	for range totalConcurrency / 2 {
		<-began
	}
	quick := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	alice := &inquiry{authorizer: quick, who: &user.DefaultInfo{Name: "alice"}, asking: asking, answers: map[right.Right]bool{}}
	if err := alice.all(t.Context(), questions); err != nil || alice.count() != len(questions) {
		t.Errorf("%d questions of alice were answered: %v", alice.count(), err)
	}
}
