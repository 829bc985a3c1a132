package targetclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Reason is the purpose of a request.
type Reason string

// Reasons of requests.
const (
	// Create, Update and Delete change an object as the chain requires.
	Create Reason = "create"
	Update Reason = "update"
	Delete Reason = "delete"
	// Repair restores an object that another writer changed.
	Repair Reason = "repair"
	// Release and Reassign change only marks and field managers.
	Release  Reason = "release"
	Reassign Reason = "reassign"
	// Preflight is a dry-run.
	Preflight Reason = "preflight"
	// Judge reads an object if the watch's state does not suffice for a decision.
	Judge Reason = "judge"
	// Guard lists instances of a kind, or contents of a namespace, before a deletion.
	Guard Reason = "guard"
	// Explain searches for the cause of an object that is not ready.
	Explain Reason = "explain"
	// Discovery asks for the served kinds.
	Discovery Reason = "discovery"
	// SelfTest tests the guarantees of the server.
	SelfTest Reason = "self-test"
	// Watch is a request that observes the state of objects.
	Watch Reason = "watch"
	// Event writes an Event.
	Event Reason = "event"
)

type reasonKey struct{}

// Because returns a context whose requests are counted with a reason.
func Because(ctx context.Context, reason Reason) context.Context {
	return context.WithValue(ctx, reasonKey{}, reason)
}

func reasonOf(ctx context.Context) (Reason, bool) {
	reason, ok := ctx.Value(reasonKey{}).(Reason)
	return reason, ok
}

// Accounted is a client that sets the reason of its requests. A write whose context has the reason
// Repair counts as a repair.
type Accounted struct{ *Client }

// Apply is Client.Apply.
func (a Accounted) Apply(ctx context.Context, ref manifest.Ref, body []byte, options ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	reason := Update
	if given, ok := reasonOf(ctx); ok && given == Repair {
		reason = Repair
	}
	switch {
	case options.DryRun:
		reason = Preflight
	case options.CreateOnly:
		reason = Create
	}
	return a.Client.Apply(Because(ctx, reason), ref, body, options)
}

// Try is Client.Try.
func (a Accounted) Try(ctx context.Context, ref manifest.Ref, body []byte, options TryOptions) (*unstructured.Unstructured, error) {
	return a.Client.Try(Because(ctx, Preflight), ref, body, options)
}

// Delete is Client.Delete.
func (a Accounted) Delete(ctx context.Context, ref manifest.Ref, precondition Precondition) error {
	return a.Client.Delete(Because(ctx, Delete), ref, precondition)
}

// Release is Client.Release.
func (a Accounted) Release(ctx context.Context, ref manifest.Ref, precondition Precondition, marks Marks) error {
	return a.Client.Release(Because(ctx, Release), ref, precondition, marks)
}

// Read is Client.Read.
func (a Accounted) Read(ctx context.Context, ref manifest.Ref) (*unstructured.Unstructured, error) {
	return a.Client.Read(Because(ctx, Judge), ref)
}

// ReadMetadata is Client.ReadMetadata.
func (a Accounted) ReadMetadata(ctx context.Context, ref manifest.Ref) (*metav1.PartialObjectMetadata, error) {
	return a.Client.ReadMetadata(Because(ctx, Judge), ref)
}

// Instances is Client.Instances.
func (a Accounted) Instances(ctx context.Context, kind manifest.Ref, limit int64) ([]metav1.PartialObjectMetadata, error) {
	return a.Client.Instances(Because(ctx, Guard), kind, limit)
}

// SelfTest is Client.SelfTest.
func (a Accounted) SelfTest(ctx context.Context) error {
	return a.Client.SelfTest(Because(ctx, SelfTest))
}

// Reassign is Client.Reassign.
func (a Accounted) Reassign(ctx context.Context, ref manifest.Ref, precondition Precondition, fields []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	return a.Client.Reassign(Because(ctx, Reassign), ref, precondition, fields)
}
