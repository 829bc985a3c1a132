package review

import (
	"fmt"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/tree"
)

// privileges returns the rights of a pod on its node, as text for users.
func privileges(pod *tree.Node) []string {
	var all []string
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if pod.Field(name).IsTrue() {
			all = append(all, name)
		}
	}
	for _, volume := range pod.Field("volumes").Items() {
		if host := volume.At("hostPath", "path").Str(); host != "" {
			access := "the host's files at " + printable.Line(host)
			if writes(pod, volume.Field("name").Str()) {
				access += ", to write"
			}
			all = append(all, access)
		}
	}
	for _, one := range pod.At("securityContext", "sysctls").Items() {
		all = append(all, "sysctl "+printable.Line(one.Field("name").Str()))
	}
	byKey, order := containers(pod)
	for _, key := range order {
		add := func(what string) {
			all = append(all, fmt.Sprintf("%s (%s)", printable.Line(what), printable.Line(key.String())))
		}
		c := secured{pod, byKey[key]}
		own := c.container.Field("securityContext")
		if own.Field("privileged").IsTrue() {
			add("privileged")
		}
		// If the container has no value, the pod's value applies.
		process := own.At("windowsOptions", "hostProcess")
		if process == nil {
			process = pod.At("securityContext", "windowsOptions", "hostProcess")
		}
		if process.IsTrue() {
			add("a process of the node")
		}
		if user, ok := integer(c.at("runAsUser")); ok && user == 0 {
			add("root")
		}
		for _, profile := range []string{"seccompProfile", "appArmorProfile"} {
			if c.at(profile, "type").Str() == "Unconfined" {
				add(profile + " Unconfined")
			}
		}
		if label := c.at("seLinuxOptions", "type").Str(); label != "" {
			add("SELinux type " + label)
		}
		if mount := own.Field("procMount").Str(); mount == "Unmasked" {
			add("procMount Unmasked")
		}
		for _, capability := range own.At("capabilities", "add").Items() {
			add("capability " + capability.Str())
		}
		for _, port := range c.container.Field("ports").Items() {
			if host, ok := integer(port.Field("hostPort")); ok && host != 0 {
				add(fmt.Sprintf("port %d of the node", host))
			}
		}
	}
	return all
}

// writes reports whether a container of a pod may write to a volume.
func writes(pod *tree.Node, volume string) bool {
	byKey, _ := containers(pod)
	for _, one := range byKey {
		for _, mount := range one.Field("volumeMounts").Items() {
			if mount.Field("name").Str() == volume && !mount.Field("readOnly").IsTrue() {
				return true
			}
		}
	}
	return false
}

// guards returns the settings that limit the containers of a pod, by container.
func guards(pod *tree.Node) map[container][]string {
	all := make(map[container][]string)
	byKey, order := containers(pod)
	for _, key := range order {
		c, add := secured{pod, byKey[key]}, func(what string) { all[key] = append(all[key], what) }
		own := c.container.Field("securityContext")
		user, numbered := integer(c.at("runAsUser"))
		if c.at("runAsNonRoot").IsTrue() || numbered && user != 0 {
			add("another user than root")
		}
		if profile := c.at("seccompProfile", "type").Str(); profile != "" && profile != "Unconfined" {
			add("seccompProfile")
		}
		if profile := c.at("appArmorProfile", "type").Str(); profile != "" && profile != "Unconfined" {
			add("appArmorProfile")
		}
		if users := pod.Field("hostUsers"); users != nil && users.Scalar() == false {
			add("hostUsers: false")
		}
		if escalation := own.Field("allowPrivilegeEscalation"); escalation != nil && escalation.Scalar() == false {
			add("allowPrivilegeEscalation: false")
		}
		for _, capability := range own.At("capabilities", "drop").Items() {
			add("drop of capability " + capability.Str())
		}
	}
	return all
}

// lostGuards returns the lost guards of containers that stay, as text for users.
func lostGuards(before, after *tree.Node) []string {
	var lost []string
	had, has := guards(before), guards(after)
	stay, _ := containers(after)
	_, old := containers(before)
	for _, key := range old {
		if stay[key] == nil {
			continue
		}
		for _, guard := range gained(has[key], had[key]) {
			lost = append(lost, fmt.Sprintf("%s (%s)", printable.Line(guard), printable.Line(key.String())))
		}
	}
	return lost
}

// secured is a container with its pod.
type secured struct{ pod, container *tree.Node }

// at returns a field of the security context: the container's value, or the pod's value if the
// container has none.
func (s secured) at(names ...string) *tree.Node {
	if own := s.container.Field("securityContext"); own.Field(names[0]) != nil {
		return own.At(names...)
	}
	return s.pod.Field("securityContext").At(names...)
}

func integer(n *tree.Node) (int64, bool) {
	if n == nil {
		return 0, false
	}
	value, ok := n.Scalar().(int64)
	return value, ok
}
