package rollout

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	// HeldAfter is the time after which a user should examine an object whose deletion waits for
	// finalizers. A controller takes minutes to remove a load balancer or a cluster.
	HeldAfter = 5 * time.Minute
	// firstInspection is the delay of the first inspection: by then the cluster has begun to delete
	// the dependents.
	firstInspection = 5 * time.Second
	// maxInspected limits the instances of a definition whose finalizers are read.
	maxInspected = 100
)

// Terminating returns the message that an object is being deleted, with its open finalizers.
func Terminating(finalizers []string) string {
	const deleting = "is being deleted"
	if len(finalizers) == 0 {
		return deleting
	}
	return deleting + "; it waits for " + nameFinalizers(finalizers)
}

func nameFinalizers(finalizers []string) string {
	names := strings.Join(finalizers[:min(maxNamed, len(finalizers))], ", ")
	if more := len(finalizers) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if len(finalizers) == 1 {
		return "its finalizer " + names
	}
	return "its finalizers " + names
}

// detained describes the first instances whose deletion waits for finalizers.
func detained(objects []metav1.PartialObjectMetadata) string {
	var held []string
	for i := range objects {
		object := &objects[i]
		if object.DeletionTimestamp == nil || len(object.Finalizers) == 0 {
			continue
		}
		if len(held) == maxNamed {
			held = append(held, "and more")
			break
		}
		kind := object.GroupVersionKind()
		id := manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}
		held = append(held, fmt.Sprintf("%s waits for %s", id, nameFinalizers(object.Finalizers)))
	}
	return strings.Join(held, ", ")
}

// detains completes the failure of a definition or namespace whose content must be deleted first:
// it names the content that finalizers hold. The interval between inspections grows.
func (p *pass) detains(ctx context.Context, o *object, failure *Failure) {
	id := failure.ID
	if !id.IsDefinition() && !isNamespace(id) {
		return
	}
	now, known := p.engine.Clock.Now(), p.memory.detains[id]
	switch {
	case known.next.IsZero():
		known.next = now.Add(firstInspection)
		p.memory.detains[id] = known
	case !now.Before(known.next):
		held, err := o.inspect(ctx)
		if err != nil {
			held = "" // the next inspection may succeed
		}
		known = known.again(held, now, p.engine.Jitter)
		p.memory.detains[id] = known
	}
	p.due(known.next)
	if known.full != "" {
		failure.Message, failure.Held = "is being deleted; "+known.full, true
	}
}

// inspect describes the content that delays the deletion of a definition or a namespace; empty for
// none.
func (o *object) inspect(ctx context.Context) (string, error) {
	live, err := o.engine.Reader.Read(ctx, o.step.Ref)
	if err != nil {
		return "", err
	}
	if o.step.IsDefinition() {
		kind, served := servedKind(live.Object)
		if !served {
			return "", nil
		}
		instances, err := o.engine.Reader.Instances(ctx, kind, maxInspected)
		return detained(instances), err
	}
	said := namespaceSays(live)
	if said == "" || o.engine.NamespaceContents == nil {
		return said, nil
	}
	bounded, cancel := context.WithTimeout(ctx, insideTimeout)
	defer cancel()
	inside, err := o.engine.NamespaceContents.InNamespace(bounded, o.step.Name, o.engine.Names.ChainLabel)
	if held := detained(inside); err == nil && held != "" {
		return held, nil
	}
	return said, nil
}

// namespaceSays returns the message of the cluster's namespace controller about finalizers.
func namespaceSays(namespace *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(namespace.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "NamespaceFinalizersRemaining" && condition["status"] == "True" {
			message, _ := condition["message"].(string)
			return message
		}
	}
	return ""
}
