package applycheck

import (
	"context"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// maxAsked is the largest number of group versions that one call of Check requests from a cluster.
const maxAsked = 16

// Cluster returns the types of one cluster.
type Cluster interface {
	// TypeOf returns the type of a kind, or nil if the cluster does not have the kind. A type that
	// is not fresh may be some minutes old.
	TypeOf(ctx context.Context, kind runtimeschema.GroupVersionKind, fresh bool) (*Type, error)
}

// Refusal is an error that server-side apply would return for one object.
type Refusal struct {
	// Object is the index of the object in the checked list.
	Object int
	Findings
	// Unsure is true if only this program's types were used, because the cluster's types could not
	// be read. A newer cluster may have more fields.
	Unsure bool
}

// Check returns the objects that server-side apply would refuse if they are rolled out together.
// Types come from definitions among the objects, then from Kubernetes, then from the cluster (which
// may be nil). A finding by the types of Kubernetes counts only if the cluster agrees, because its
// version may differ. Kinds of unknown type are not checked. After the first request without an
// answer, the cluster is not asked again.
func Check(ctx context.Context, builtin *BuiltinTypes, cluster Cluster, objects []manifest.Object) ([]Refusal, error) {
	c := &check{builtin: builtin, definitions: NewDefinitions(builtin, objects), cluster: cluster, asked: map[runtimeschema.GroupVersion]bool{}}
	var refusals []Refusal
	for i := range objects {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		refusal, err := c.object(ctx, &objects[i])
		if err != nil {
			return nil, err
		}
		if len(refusal.List) > 0 {
			refusal.Object = i
			refusals = append(refusals, refusal)
		}
	}
	return refusals, nil
}

type check struct {
	builtin     *BuiltinTypes
	definitions *Definitions
	cluster     Cluster
	asked       map[runtimeschema.GroupVersion]bool
}

func (c *check) object(ctx context.Context, object *manifest.Object) (Refusal, error) {
	kind := object.GroupVersionKind()
	if brought := c.definitions.TypeOf(kind); brought != nil {
		findings, err := brought.Check(object)
		return Refusal{Findings: findings}, err
	}
	if c.definitions.Defines(kind.GroupKind()) {
		return Refusal{}, nil
	}
	known := c.builtin.TypeOf(kind)
	builtin := known != nil
	if !builtin {
		known = c.ask(ctx, kind, false)
	}
	if known == nil {
		return Refusal{}, nil
	}
	findings, err := known.Check(object)
	if err != nil || len(findings.List) == 0 {
		return Refusal{}, err
	}
	fresh := c.ask(ctx, kind, true)
	if fresh == nil {
		return Refusal{Findings: findings, Unsure: findings.dependOnVersion()}, nil
	}
	if findings.undecodable() {
		return Refusal{Findings: findings}, nil
	}
	findings, err = fresh.Check(object)
	return Refusal{Findings: findings}, err
}

// ask requests a type from the cluster; nil means that the cluster has none or does not answer.
func (c *check) ask(ctx context.Context, kind runtimeschema.GroupVersionKind, fresh bool) *Type {
	version := kind.GroupVersion()
	if c.cluster == nil || !c.asked[version] && len(c.asked) >= maxAsked {
		return nil
	}
	c.asked[version] = true
	found, err := c.cluster.TypeOf(ctx, kind, fresh)
	if err != nil {
		c.cluster = nil
		return nil
	}
	return found
}

// dependOnVersion reports whether another version of Kubernetes may accept the object.
func (f *Findings) dependOnVersion() bool {
	for _, one := range f.List {
		if one.Reason == Unknown || one.Reason == WrongType {
			return true
		}
	}
	return false
}

// undecodable reports whether the object cannot be decoded into its Go type, which OpenAPI
// documents cannot show.
func (f *Findings) undecodable() bool {
	for _, one := range f.List {
		if one.Reason == Undecodable {
			return true
		}
	}
	return false
}
