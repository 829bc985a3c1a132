package extension

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/admission/webhook/webhooktest"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/extension"
)

// asks records each checked right, and always gives the same answer.
type asks struct {
	may   bool
	err   error
	asked []string
}

func (a *asks) May(_ context.Context, who user.Info, asked authz.Right) (bool, error) {
	a.asked = append(a.asked, who.GetName()+" "+asked.String())
	return a.may, a.err
}

// TestMayGet: a user who becomes the author of an extension must be able to get the objects with
// its values. A write that sets no author is not checked.
func TestMayGet(t *testing.T) {
	const from = "[{kind: Secret, name: db, key: a}, {kind: Secret, name: db, key: b}, {kind: ConfigMap, name: c}]"
	with := map[string]string{extension.ValuesFromAnnotation: from}
	for name, tc := range map[string]struct {
		rights asks
		spec   string
		want   string
		asked  []string
	}{
		"May":       {asks{may: true}, "1.1.0", "", []string{"mallory get secrets argocd/db", "mallory get configmaps argocd/c"}},
		"MayNot":    {asks{}, "1.1.0", "Forbidden: mallory cannot get secrets argocd/db", []string{"mallory get secrets argocd/db"}},
		"Unknown":   {asks{err: errors.New("no answer")}, "1.1.0", "Internal error: finding out whether mallory may get", []string{"mallory get secrets argocd/db"}},
		"Unchanged": {asks{}, "1.0.0", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, refused := of(at).Read(webhooktest.Review(t, mallory, written(tc.spec, with), written("1.0.0", with)))
			if refused != nil {
				t.Fatal(refused.Refusal.Message)
			}
			errs := mayGet(t.Context(), &tc.rights, webhooktest.Review(t, mallory, written(tc.spec, with), nil), w)
			said := ""
			if len(errs) > 0 {
				said = errs.ToAggregate().Error()
			}
			if (said == "") != (tc.want == "") || !strings.Contains(said, tc.want) || !slices.Equal(tc.rights.asked, tc.asked) {
				t.Errorf("it says %q after %q", said, tc.rights.asked)
			}
		})
	}
}
