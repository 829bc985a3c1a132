package targetclient

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

// Messages of the server and its webhooks may quote an object. All of them pass this client, as
// errors and as warnings. So the client removes hidden content, and no caller can forget it.

// redacted returns an error without quoted hidden content of an object. body is the sent manifest,
// or nil.
func (c *Client) redacted(ctx context.Context, ref manifest.Ref, body []byte, err error) error {
	if err == nil || !c.redactor.Hides(ref.GroupKind()) || isOurs(err) {
		return err
	}
	return c.redactor.Error(ref.ID, err, c.known(ctx, ref, body, err)...)
}

// isOurs reports whether this package created the error, with identities only.
func isOurs(err error) bool {
	var scope *ScopeError
	var kind *KindUnknownError
	var unguarded *UnguardedError
	var gone *VersionGoneError
	return errors.As(err, &gone) || errors.As(err, &scope) || errors.As(err, &kind) || errors.As(err, &unguarded)
}

// known returns the objects that an answer may quote: the manifest, and the live object (a policy
// may compare both). If one of them cannot be read, it returns nil, and the whole message is
// removed. Content of Secrets is never read.
func (c *Client) known(ctx context.Context, ref manifest.Ref, body []byte, err error) []map[string]any {
	if ref.IsSecret() || !isServerAnswer(err) {
		return nil
	}
	objects := []map[string]any{}
	if body != nil {
		var sent map[string]any
		if err := json.Unmarshal(body, &sent); err != nil {
			return nil
		}
		objects = append(objects, sent)
	}
	if apierrors.IsNotFound(err) {
		return objects
	}
	live, err := c.live(ctx, ref)
	switch {
	case apierrors.IsNotFound(err):
		return objects
	case err != nil:
		return nil
	}
	return append(objects, live)
}

func (c *Client) live(ctx context.Context, ref manifest.Ref) (map[string]any, error) {
	var live *unstructured.Unstructured
	err := c.reach(ctx, ref, func(resource schema.GroupVersionResource, _ manifest.Ref) (err error) {
		live, err = c.dynamic.Resource(resource).Namespace(ref.Namespace).Get(about(ctx, ref), ref.Name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return live.Object, nil
}

func isServerAnswer(err error) bool {
	answer := apierrors.APIStatus(nil)
	return errors.As(err, &answer)
}

type subjectKey struct{}

// about stores the object of a request in the context, for warnings in the answer.
func about(ctx context.Context, ref manifest.Ref) context.Context {
	return context.WithValue(ctx, subjectKey{}, ref.ID)
}

// warnings logs the warnings of answers. It omits the text for kinds with hidden fields, because
// the quoted object is not known here.
type warnings struct{ redactor *redact.Redactor }

var _ rest.WarningHandlerWithContext = warnings{}

// HandleWarningHeaderWithContext logs one warning.
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	// 299 is the only code that API servers use (RFC 9111, 5.5: the other codes are obsolete).
	const miscellaneous = 299
	id, known := ctx.Value(subjectKey{}).(manifest.ID)
	if code != miscellaneous || text == "" || !known {
		return
	}
	if w.redactor.Hides(id.GroupKind()) {
		text = "(not repeated here, because it may quote hidden values)"
	}
	klog.FromContext(ctx).Info("The cluster warns", "object", id.String(), "warning", text)
}
