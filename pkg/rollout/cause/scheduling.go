package cause

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/text"
)

// nodes matches the beginning of the scheduler's message (pkg/scheduler/framework/types.go,
// FitError).
var nodes = regexp.MustCompile(`^0/(\d+) nodes are available:?`)

// insufficient matches the scheduler's text about a resource that nodes lack.
var insufficient = regexp.MustCompile(`(\d+) Insufficient ([A-Za-z0-9./_-]+)`)

// obstacle maps a reason of the scheduler's plugins (pkg/scheduler/framework/plugins) to our words.
// The scheduler writes the number of nodes before the reason.
type obstacle struct {
	form  *regexp.Regexp
	words string
}

// obstacles are the reasons with a fixed text. Variable parts after it, such as the key and the
// value of a taint, are omitted.
var obstacles = []obstacle{
	{form(`node\(s\) had untolerated taint`), "with a taint that is not tolerated"},
	{form(`node\(s\) had taint`), "with a taint that is not tolerated"},
	{form(`node\(s\) didn't match Pod's node affinity/selector`), "not matched by its node selector or affinity"},
	{form(`node\(s\) didn't match pod affinity rules`), "not matched by its Pod affinity"},
	{form(`node\(s\) didn't match pod anti-affinity rules`), "excluded by its Pod anti-affinity"},
	{form(`node\(s\) didn't satisfy existing pods anti-affinity rules`), "excluded by the anti-affinity of other Pods"},
	{form(`node\(s\) didn't match pod topology spread constraints`), "excluded by its topology spread constraints"},
	{form(`node\(s\) didn't match the requested node name`), "not the node that it names"},
	{form(`node\(s\) were unschedulable`), "cordoned"},
	{form(`node\(s\) didn't have free ports for the requested pod ports`), "without the host port free"},
	{form(`node\(s\) had volume node affinity conflict`), "that cannot reach its volume"},
	{form(`node\(s\) had no available volume zone`), "in another zone than its volume"},
	{form(`node\(s\) exceed max volume count`), "with too many volumes"},
	{form(`node\(s\) didn't find available persistent volumes to bind`), "without a volume to bind"},
	{form(`node\(s\) did not have enough free storage`), "without enough storage"},
	{form(`Too many pods`), "with too many Pods"},
}

func form(pattern string) *regexp.Regexp { return regexp.MustCompile(`(\d+) ` + pattern) }

func unscheduled(pod *corev1.Pod, c Cause, said *corev1.PodCondition) Cause {
	c.Reason = reasonOr(said.Reason, corev1.PodReasonUnschedulable)
	c = c.because(said.Message)
	if c.Reason == corev1.PodReasonSchedulingGated {
		var gates []string
		for _, gate := range pod.Spec.SchedulingGates {
			gates = append(gates, word(gate.Name))
		}
		c.Facts = "waits for " + strings.Join(gates, ", ")
		return c
	}
	if id := unboundClaim(pod, said.Message); id != nil {
		c.Related, c.Facts = id, "does not exist"
		return c
	}
	written, _, _ := strings.Cut(said.Message, " preemption: ")
	c.Facts = counted(pod, written)
	if NotBound(said.Message) {
		c.Facts = "a PersistentVolumeClaim of it is not bound"
		if names := ClaimsOf(pod); len(names) == 1 {
			c.Related, c.Facts = ptr.To(claimID(pod.Namespace, names[0])), "is not bound"
		}
	}
	return c
}

// counted returns the number of nodes that do not fit, by reason.
func counted(pod *corev1.Pod, written string) string {
	all := nodes.FindStringSubmatch(written)
	if all == nil {
		return ""
	}
	total, err := strconv.Atoi(all[1])
	if err != nil {
		return ""
	}
	var parts []string
	for _, match := range insufficient.FindAllStringSubmatch(written, -1) {
		// Of the scheduler's text, the name of a resource is used only if the Pod requests it.
		resource := "a resource"
		if requests(pod, strings.TrimSuffix(match[2], ".")) {
			resource = word(strings.TrimSuffix(match[2], "."))
		}
		parts = append(parts, match[1]+" with insufficient "+resource)
	}
	for _, o := range obstacles {
		sum := 0
		for _, match := range o.form.FindAllStringSubmatch(written, -1) {
			n, err := strconv.Atoi(match[1])
			if err != nil {
				return ""
			}
			sum += n
		}
		if sum > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", sum, o.words))
		}
	}
	facts := "none of " + text.Count(total, "node") + " fits"
	if parts = slices.Compact(parts); len(parts) > 0 {
		facts += ": " + strings.Join(parts, ", ")
	}
	return facts
}

func requests(pod *corev1.Pod, resource string) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, container := range list {
			_, requested := container.Resources.Requests[corev1.ResourceName(resource)]
			if _, limited := container.Resources.Limits[corev1.ResourceName(resource)]; requested || limited {
				return true
			}
		}
	}
	_, overhead := pod.Spec.Overhead[corev1.ResourceName(resource)]
	return overhead
}

// unboundClaim returns the Pod's claim that the scheduler reports as missing.
func unboundClaim(pod *corev1.Pod, written string) *manifest.ID {
	for _, name := range ClaimsOf(pod) {
		if strings.Contains(written, `persistentvolumeclaim "`+name+`" not found`) {
			return ptr.To(claimID(pod.Namespace, name))
		}
	}
	return nil
}

// NotBound reports whether the scheduler waits for a claim to be bound.
func NotBound(written string) bool {
	return strings.Contains(written, "pod has unbound immediate PersistentVolumeClaims")
}

func claimID(namespace, name string) manifest.ID {
	return manifest.ID{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}
}
