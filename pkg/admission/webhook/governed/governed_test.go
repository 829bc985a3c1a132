package governed

import (
	"cmp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
)

func object(label string, managers ...webhook.Manager) *webhook.Object {
	o := &webhook.Object{Metadata: webhook.Metadata{ManagedFields: managers}}
	if label != "" {
		o.Metadata.Labels = webhook.Labels{"penstock.dev/chain": label}
	}
	return o
}

func applied(chain string) webhook.Manager {
	return webhook.Manager{Manager: "penstock/" + chain, Operation: "Apply"}
}

// owned returns a protected object with owners.
func owned(names ...string) *webhook.Object {
	o := object("argocd", applied("argocd"))
	for _, name := range names {
		o.Metadata.OwnerReferences = append(o.Metadata.OwnerReferences, webhook.Owner{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: "uid of " + name})
	}
	return o
}

func TestJudge(t *testing.T) {
	going := object("argocd", applied("argocd"))
	now := "2026-11-21T00:00:00Z"
	going.Metadata.DeletionTimestamp = &now
	governed := object("argocd", webhook.Manager{Manager: "kubectl", Operation: "Update"}, applied("argocd"))
	for name, tc := range map[string]struct {
		reason    string
		operation admissionv1.Operation
		kind, sub string
		old, new  *webhook.Object
		says      string
	}{
		"Delete":       {reason: "what it is for", operation: admissionv1.Delete, old: governed, says: `deleting ConfigMap default/a is not allowed: extension "argocd"`},
		"NotOurs":      {reason: "no mark", operation: admissionv1.Delete, old: object("")},
		"CopiedLabel":  {reason: "EndpointSlices have the labels of their Service", operation: admissionv1.Delete, old: object("argocd")},
		"OtherManager": {reason: "the label alone is no proof", operation: admissionv1.Delete, old: object("argocd", applied("lighthouse"))},
		"NotApplied":   {reason: "we only ever apply", operation: admissionv1.Delete, old: object("argocd", webhook.Manager{Manager: "penstock/argocd", Operation: "Update"})},
		"Going":        {reason: "it is being deleted", operation: admissionv1.Delete, old: going},
		"Finalizer":    {reason: "finalizers are removed", operation: admissionv1.Update, old: going, new: object("")},
		"Update":       {reason: "drift is repaired", operation: admissionv1.Update, old: governed, new: governed},
		"Unlabel":      {reason: "to delete it then", operation: admissionv1.Update, old: governed, new: object("", applied("argocd")), says: "removing the marks of Penstock from ConfigMap default/a"},
		"Relabel":      {reason: "to another chain", operation: admissionv1.Update, old: governed, new: object("other", applied("argocd"), applied("other")), says: "removing the marks"},
		"Unmanage":     {reason: "wiped managedFields", operation: admissionv1.Update, old: governed, new: object("argocd"), says: "removing the marks"},
		"Own":          {reason: "garbage collection deletes what belongs to nobody who is there", operation: admissionv1.Update, old: governed, new: owned("gone"), says: "giving an owner to ConfigMap default/a"},
		"OwnAnother":   {reason: "or to one more of those", operation: admissionv1.Update, old: owned("a"), new: owned("a", "gone"), says: "giving an owner to"},
		"Owned":        {reason: "as it was", operation: admissionv1.Update, old: owned("a"), new: owned("a")},
		"Disown":       {reason: "it stays then", operation: admissionv1.Update, old: owned("a"), new: governed},
		"Status":       {reason: "metadata changes by subresources too", operation: admissionv1.Update, sub: "status", old: governed, new: object("", applied("argocd")), says: "removing the marks"},
		"OwnByStatus":  {reason: "owners as well", operation: admissionv1.Update, sub: "status", old: governed, new: owned("gone"), says: "giving an owner to"},
		"StatusKept":   {reason: "controllers write status", operation: admissionv1.Update, sub: "status", old: governed, new: governed},
		"Scale":        {reason: "a scale has no metadata of the object", operation: admissionv1.Update, sub: "scale", old: object(""), new: object("")},
		"Imitated":     {reason: "an entry of our name that is not what we have applied", operation: admissionv1.Update, old: governed, new: object("argocd", webhook.Manager{Manager: "penstock/argocd", Operation: "Update"}), says: "removing the marks"},
		"Create":       {reason: "there was nothing", operation: admissionv1.Create, new: governed},
		"Bind":         {reason: "its labels become those of the pod", operation: admissionv1.Create, kind: "Binding", sub: "binding", new: object("other"), says: "giving Pod default/a the label penstock.dev/chain by its binding"},
		"BindPlain":    {reason: "pods are scheduled", operation: admissionv1.Create, kind: "Binding", sub: "binding", new: object("")},
		"NoOld":        {reason: "a deletion that says nothing", operation: admissionv1.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(webhook.Review{Operation: tc.operation, Kind: cmp.Or(tc.kind, "ConfigMap"), Namespace: "default", Name: "a", SubResource: tc.sub, Old: tc.old, Object: tc.new})
			if (got == "") != (tc.says == "") || !strings.HasPrefix(got, tc.says) {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.says)
			}
		})
	}
}
