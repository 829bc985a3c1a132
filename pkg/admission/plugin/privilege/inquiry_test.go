package privilege

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/fairshare"
)

// TestQuestionsAreFair: users whose checks get no answer, under any number of names, do not block
// the checks of other users.
func TestQuestionsAreFair(t *testing.T) {
	asking := fairshare.NewPool(totalConcurrency)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	questions := make([]authz.Right, 4*requestConcurrency)
	for i := range questions {
		questions[i] = authz.Right{Verb: "create", Resource: fmt.Sprint(i)}
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
			i := &inquiry{authorizer: silent, who: who, asking: asking, answers: map[authz.Right]bool{}}
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
	alice := &inquiry{authorizer: quick, who: &user.DefaultInfo{Name: "alice"}, asking: asking, answers: map[authz.Right]bool{}}
	if err := alice.all(t.Context(), questions); err != nil || alice.count() != len(questions) {
		t.Errorf("%d questions of alice were answered: %v", alice.count(), err)
	}
}

// TestAskedOnceForOneRequest: if a request deletes several revisions, an answer about one revision
// counts for the next, whether yes or no. The next request checks again.
func TestAskedOnceForOneRequest(t *testing.T) {
	first, second := rev(1, configMap(t, "a", "1")), rev(2, configMap(t, "a", "1"), configMap(t, "b", "1"))
	both := func(w *situation, ctx context.Context) (errs []error, asked []int) {
		p := w.plugin()
		for _, r := range []*revision{first, second} {
			before := len(w.asked)
			errs = append(errs, p.Validate(ctx, attributes(admission.Delete, nil, r, ""), nil))
			asked = append(asked, len(w.asked)-before)
		}
		return errs, asked
	}
	bypass := rule("bypass", "policy.penstock.dev", "privilegechecks")
	together := newSituation(t).may("", bypass)
	errs, asked := both(together, request.WithAnswers(t.Context()))
	if errs[0] != nil || errs[1] != nil || asked[0] != 1 || asked[1] != 0 {
		t.Errorf("who may bypass, in one request: %v questions, %v", asked, errs)
	}
	if _, asked := both(together, t.Context()); asked[0] != 1 || asked[1] != 1 {
		t.Errorf("who may bypass, in two requests: %v questions", asked)
	}
	lacking := newSituation(t).has(1, configMap(t, "a", "1")).has(2, configMap(t, "b", "1")).holds(first, second)
	errs, asked = both(lacking, request.WithAnswers(t.Context()))
	if errs[0] == nil && errs[1] == nil || asked[0] == 0 || asked[1] >= asked[0]+2 {
		t.Errorf("a user without rights, in one request: %v questions, %v", asked, errs)
	}
	seen := map[authz.Right]bool{}
	for _, q := range lacking.asked {
		if seen[q] {
			t.Errorf("%s was asked twice", q)
		}
		seen[q] = true
	}
}
