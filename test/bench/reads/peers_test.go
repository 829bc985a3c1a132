package reads

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/test/bench/operator"
)

// The same records as custom resources, without and with inline manifests.
const (
	smallGroup  = "small.bench.penstock.dev"
	inlineGroup = "inline.bench.penstock.dev"
	smallPeers  = "/apis/" + smallGroup + "/v1/revisions"
	inlinePeers = "/apis/" + inlineGroup + "/v1/revisions"
)

// definition defines both kinds, with GROUP and MANIFEST as placeholders.
//
//go:embed testdata/crd.yaml
var definition string

// peers creates a custom resource for every revision, and with inline another one with inline
// manifests.
func (b *bench) peers(inline bool) {
	b.t.Helper()
	b.say("creating %d custom resources of the same records", b.settings.revisions)
	stored := b.stored()
	b.peerMemory("none")
	b.define(smallGroup, smallPeers)
	b.each(func(ctx context.Context, o operator.Operator, number int) error {
		return b.createPeer(ctx, smallGroup, smallPeers, stored[fmt.Sprintf("%s-%d", o.Name, number)])
	})
	b.peerMemory(fmt.Sprintf("%d small ones, just created", b.settings.revisions))
	if b.inline = inline; !inline {
		return
	}
	b.say("creating %d custom resources with the manifests inline", b.settings.revisions)
	b.define(inlineGroup, inlinePeers)
	b.each(func(ctx context.Context, o operator.Operator, number int) error {
		record := stored[fmt.Sprintf("%s-%d", o.Name, number)].DeepCopy()
		revision, err := o.Revision(number)
		if err != nil {
			return err
		}
		phases, err := asAny(revision.Spec.Phases)
		if err != nil {
			return err
		}
		record.Object["spec"].(map[string]any)["phases"] = phases
		return b.createPeer(ctx, inlineGroup, inlinePeers, record)
	})
	b.peerMemory(fmt.Sprintf("%d with the manifests inline besides, just created", b.settings.revisions))
}

func (b *bench) stored() map[string]*unstructured.Unstructured {
	b.t.Helper()
	var list struct{ Items []map[string]any }
	if err := b.direct.decode(b.t.Context(), revisions, &list); err != nil {
		b.t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, item := range list.Items {
		record := &unstructured.Unstructured{Object: item}
		found[record.GetName()] = record
	}
	return found
}

func (b *bench) define(group, path string) {
	b.t.Helper()
	manifest := ""
	if group == inlineGroup {
		manifest = "object: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}"
	}
	text := strings.NewReplacer("GROUP", group, "MANIFEST", manifest).Replace(definition)
	b.cluster.MustKubectlInput(text, "create", "-f", "-")
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for {
		_, err := b.host.read(ctx, path, asJSON)
		if err == nil {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			b.t.Fatalf("%s is not served: %v", path, err)
		}
	}
}

// createPeer creates a custom resource with the content of a revision, without the fields that a
// server sets.
func (b *bench) createPeer(ctx context.Context, group, path string, record *unstructured.Unstructured) error {
	peer := &unstructured.Unstructured{Object: map[string]any{"spec": record.Object["spec"], "status": record.Object["status"]}}
	peer.SetAPIVersion(group + "/v1")
	peer.SetKind("Revision")
	peer.SetName(record.GetName())
	peer.SetLabels(record.GetLabels())
	peer.SetAnnotations(record.GetAnnotations())
	peer.SetFinalizers(record.GetFinalizers())
	body, err := json.Marshal(peer.Object)
	if err != nil {
		return fmt.Errorf("encoding the custom resource of %s: %w", record.GetName(), err)
	}
	return b.host.post(ctx, path, body)
}

// asAny converts a value to decoded JSON.
func asAny(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(text, &out)
}

func (b *bench) version(c *client, path string) string {
	b.t.Helper()
	response, err := c.do(b.t.Context(), http.MethodGet, path+"?limit=1", asMetadata, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		b.t.Fatal(err)
	}
	return list.Metadata.ResourceVersion
}
