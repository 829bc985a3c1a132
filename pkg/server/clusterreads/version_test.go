package clusterreads

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestVersionOfTarget: without the right to use a target, nothing of the target is read, not even
// its Secret.
func TestVersionOfTarget(t *testing.T) {
	var asked []string
	by := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		asked = append(asked, a.GetVerb()+" "+a.GetResource()+" "+a.GetName())
		return authorizer.DecisionNoOpinion, "", nil
	})
	reads := &Reads{Options: Options{Authorizer: by}} // without clients of targets
	_, err := reads.Version(t.Context(), &user.DefaultInfo{Name: "carol"}, "edge")
	if err == nil || err.Error() != "you cannot use target edge" || len(asked) != 1 || asked[0] != "use targets edge" {
		t.Errorf("%v, after %v", err, asked)
	}
}
