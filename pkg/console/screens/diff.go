package screens

import (
	"context"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Diff is what changes between two revisions, or between the cluster and one.
type Diff struct {
	// Asked is when that was, in RFC 3339: what is in the cluster changes.
	Asked string                 `json:"asked"`
	Diff  *v1alpha1.RevisionDiff `json:"diff"`
}

// narrowing are the parameters of a diff that pages may give.
func narrowing() []string { return []string{"objectKind", "objectNamespace", "objectName", "unified"} }

// diff reads a diff by its name.
func (a *API) diff(ctx context.Context, r *http.Request) (any, error) {
	name := r.PathValue("name")
	request := a.penstock.OlmV1alpha1().RESTClient().Get()
	// Of the first revision there is none before: its own diff says that all is added.
	if own, only := strings.CutPrefix(name, ".."); only {
		request = request.Resource("clusterextensionrevisions").Name(own).SubResource("diff")
	} else {
		request = request.Resource("revisiondiffs").Name(name)
	}
	given := r.URL.Query()
	for _, key := range narrowing() {
		if given.Has(key) {
			request.Param(key, given.Get(key))
		}
	}
	read := &v1alpha1.RevisionDiff{}
	if err := request.Do(ctx).Into(read); err != nil {
		return nil, err
	}
	now := metav1.Now()
	return Diff{Asked: when(&now), Diff: read}, nil
}

// history reads the history of an extension.
func (a *API) history(ctx context.Context, r *http.Request) (any, error) {
	return a.penstock.OlmV1alpha1().RevisionHistories().Get(ctx, r.PathValue("name"), metav1.GetOptions{})
}

// objects says how each object of a revision is now, as far as the user may see it.
func (a *API) objects(ctx context.Context, r *http.Request) (any, error) {
	return a.penstock.OlmV1alpha1().ClusterExtensionRevisions().GetObjects(ctx, r.PathValue("name"), metav1.GetOptions{})
}
