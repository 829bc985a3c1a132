package targetclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// selfTestNamespace exists in every cluster and always has a ConfigMap: kube-apiserver publishes
// extension-apiserver-authentication there.
const selfTestNamespace = metav1.NamespaceSystem

// SelfTest finds out, by two dry-runs, whether the server honours the precondition of a create-only
// apply. If it does not, Apply with CreateOnly uses a POST and a second request. After an error
// nothing changes. A *UntestableError means that a retry will not help either (see UsePosts); after
// any other error it may.
func (c *Client) SelfTest(ctx context.Context) error {
	holds, err := c.createOnlyHolds(ctx)
	if isFinal(err) {
		err = &UntestableError{Answer: err}
	}
	if err != nil {
		return fmt.Errorf("testing create-only apply: %w", err)
	}
	c.postCreates.Store(!holds)
	return nil
}

// PostsCreates reports whether creates are POSTs: SelfTest found that create-only apply does not
// work, or UsePosts was called.
func (c *Client) PostsCreates() bool { return c.postCreates.Load() }

// UsePosts makes Apply with CreateOnly use a POST and a second request, which works with every
// server. A successful SelfTest reverts it.
func (c *Client) UsePosts() { c.postCreates.Store(true) }

// UntestableError reports that the server refused the self-test, because rights are missing or an
// admission rule refused it.
type UntestableError struct{ Answer error }

// Error returns the server's answer.
func (e *UntestableError) Error() string { return e.Answer.Error() }

// Unwrap returns the server's answer.
func (e *UntestableError) Unwrap() error { return e.Answer }

// isFinal reports whether a repeated request would get the same answer. That is true for a refusal,
// except a temporary one or one of an expired token.
func isFinal(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}

func (c *Client) createOnlyHolds(ctx context.Context) (bool, error) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	ref := manifest.Ref{ID: manifest.ID{Kind: "ConfigMap", Namespace: selfTestNamespace}, Version: "v1"}
	existing, err := c.metadata.Resource(configMaps).Namespace(selfTestNamespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, err
	}
	if len(existing.Items) == 0 {
		return false, fmt.Errorf("there is no ConfigMap in %s to test on", selfTestNamespace)
	}

	// 1. The server must refuse an existing object.
	ref.Name = existing.Items[0].Name
	switch err := c.tryCreate(ctx, ref); {
	case err == nil:
		return false, nil
	case !apierrors.IsConflict(err):
		return false, err
	}
	// 2. The server must create an absent object.
	ref.Name = "penstock-self-test-" + rand.String(10)
	switch err := c.tryCreate(ctx, ref); {
	case err == nil:
		return true, nil
	case apierrors.IsConflict(err), apierrors.IsBadRequest(err), apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		return false, nil
	default:
		return false, err
	}
}

// tryCreate sends the dry-run of a create-only apply of an empty ConfigMap.
func (c *Client) tryCreate(ctx context.Context, ref manifest.Ref) error {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q}}`, ref.Name, ref.Namespace)
	_, err := c.patch(ctx, ref, []byte(body), ApplyOptions{FieldManager: "penstock-self-test", DryRun: true},
		metadataPatch{"resourceVersion": absentVersion})
	return err
}

// post creates an object on a server without create-only apply. A POST creates an Update entry in
// managedFields, so a second request converts it to an Apply entry. If that request fails, the
// object exists without our entry; its next apply adds one.
func (c *Client) post(ctx context.Context, ref manifest.Ref, body []byte, options ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	resource, err := c.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	created, err := c.dynamic.Resource(resource).Namespace(ref.Namespace).Create(ctx, object,
		metav1.CreateOptions{FieldManager: options.FieldManager, DryRun: dryRun(options.DryRun)})
	if err != nil {
		return nil, c.judge(ref.GroupVersionKind(), err)
	}
	result := named(ref, meta.AsPartialObjectMetadata(created))
	if options.DryRun {
		return result, nil
	}
	// The patch has the resourceVersion, so it cannot revert a later change.
	upgrade, err := csaupgrade.UpgradeManagedFieldsPatch(created, sets.New(options.FieldManager), options.FieldManager)
	if err != nil || len(upgrade) == 0 {
		return result, nil
	}
	upgraded, err := c.metadata.Resource(resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.JSONPatchType, upgrade, metav1.PatchOptions{})
	if err != nil {
		return result, nil
	}
	return named(ref, upgraded), nil
}
