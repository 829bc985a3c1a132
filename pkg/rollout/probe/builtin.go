package probe

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type judge interface {
	// judge judges the object by reading it from the view. Its verdict is ignored if the view has
	// an error.
	judge(v *view) Verdict
	reads() Reads
}

type rule struct {
	verdict func(v *view) Verdict
	looksAt Reads
}

func (r rule) judge(v *view) Verdict { return r.verdict(v) }

func (r rule) reads() Reads { return r.looksAt }

// builtin returns the judges of kinds whose status shows readiness. Objects of all other kinds are
// ready when they exist. docs/reference/probes.md documents the same for users.
func builtin() map[schema.GroupKind]judge {
	ready := ConditionEqual{Type: "Ready", Status: "True"}
	conditions := Reads{Fields: [][]string{{"status", "conditions"}}}
	return map[schema.GroupKind]judge{
		{Group: "apps", Kind: "Deployment"}: rule{deployment, Reads{
			Status: true, Fields: [][]string{{"spec", "paused"}, {"spec", "replicas"}}}},
		{Group: "apps", Kind: "StatefulSet"}: rule{statefulSet, Reads{
			Status: true, Fields: [][]string{{"spec", "replicas"}, {"spec", "updateStrategy"}}}},
		{Group: "apps", Kind: "DaemonSet"}: rule{daemonSet, Reads{
			Status: true, Fields: [][]string{{"spec", "updateStrategy"}}}},
		{Group: "batch", Kind: "Job"}: rule{job, Reads{Status: true}},
		{Kind: "Pod"}: rule{pod, Reads{Fields: [][]string{
			{"status", "phase"}, {"status", "reason"}, {"status", "message"}, {"status", "conditions"},
			{"status", "observedGeneration"}, {"status", "containerStatuses"}, {"status", "initContainerStatuses"}}}},
		{Kind: "PersistentVolumeClaim"}: rule{claim, Reads{Fields: [][]string{
			{"status", "phase"}, {"spec", "volumeName"}, {"spec", "storageClassName"}}}},
		{Kind: "Namespace"}: rule{namespace, Reads{Fields: [][]string{
			{"status", "phase"}, {"status", "conditions"}}}},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: rule{definition, conditions},
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:             rule{apiService, conditions},
		{Group: "cert-manager.io", Kind: "Certificate"}:                   ready,
		{Group: "cert-manager.io", Kind: "Issuer"}:                        ready,
		{Group: "cert-manager.io", Kind: "ClusterIssuer"}:                 ready,
	}
}

// alive fails for an object that is being deleted, whatever its status says. Built-in probes start
// with it.
func alive(v *view) Verdict {
	if v.text("metadata", "deletionTimestamp") == "" {
		return pass()
	}
	finalizers, _ := v.get("metadata", "finalizers")
	list, _ := finalizers.([]any)
	var names []string
	for _, element := range list {
		if name, isText := element.(string); isText {
			names = append(names, quote(name))
		}
	}
	if names == nil {
		return failing("is being deleted")
	}
	return failing("is being deleted, waiting for finalizers %s", strings.Join(names, ", "))
}

// prober is the probe of one kind, with all its judges.
type prober struct {
	secret bool
	judges []judge
}

// Probe joins the verdicts of all judges.
func (p *prober) Probe(object *unstructured.Unstructured) Verdict { return p.probe(object, alone()) }

func (p *prober) probe(object *unstructured.Unstructured, e evaluation) Verdict {
	if object == nil || object.Object == nil {
		return unknown("its state was not read")
	}
	whole := &view{object: object.Object, secret: p.secret, evaluation: e}
	if p.secret {
		whole.object = visibleSecret(object.Object)
	}
	verdicts := make([]Verdict, 0, len(p.judges))
	for _, j := range p.judges {
		verdicts = append(verdicts, whole.ask(j))
	}
	return and(verdicts)
}

// Reads returns the union of the fields that the judges read.
func (p *prober) Reads() Reads {
	var united Reads
	for _, j := range p.judges {
		united = united.Union(j.reads())
	}
	if p.secret {
		return readsOfSecret(united)
	}
	return united
}
