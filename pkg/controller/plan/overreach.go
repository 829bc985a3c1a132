package plan

import (
	"context"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// takesMore says which fields an item would take by now that were not reviewed to be
// taken: that somebody came to have a field is not in its value. It goes by what is
// watched, and costs a dry-run only where that finds somebody. What the cluster does
// not answer is for the item's turn to find out.
func (v *visit) takesMore(ctx context.Context, item v1alpha1.PlanItem, manifests map[manifest.Digest][]byte) (string, error) {
	if item.Action == v1alpha1.ItemNone || item.Action == v1alpha1.ItemDelete {
		return "", nil
	}
	ref := refOf(item)
	live, presence := sight(v.Engine.Observer, ref.ID)
	raw, found := manifests[ref.Digest]
	if presence != observe.Present || !found {
		return "", nil
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil { // which keeps whole numbers whole
		return "", err
	}
	may := mayTake(item)
	if len(rollout.TakesMore(content, live, v.Engine.Identity(string(v.plan.Spec.Profile)).Manager, may)) == 0 {
		return "", nil
	}
	work, err := v.worked([]wanted{{Item: profile.Item{Name: item.Name}, object: manifest.Object{Ref: ref, JSON: raw}}})
	if err != nil {
		return "", err
	}
	said, err := v.previewer().Preview(ctx, work, nil)
	if err != nil {
		return "", err
	}
	var more []string
	for _, seen := range said.Items {
		more = append(more, rollout.Beyond(seen.Taken, may)...)
	}
	if len(more) == 0 {
		return "", nil
	}
	return "changed since it was reviewed; " + strings.Join(more, ", "), nil
}
