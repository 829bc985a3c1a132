package pod

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// enter is a shell script that sets up the container in new namespaces. It is the first process
// there, as root. At its end it becomes the program, as a user without capabilities in a nested
// user namespace. So signals to this process reach the program. Arguments: the image's folder, the
// user, the mode of the root (ro or rw), the number of mounts, each mount as two words, and the
// command.
const enter = `set -eu
root="$1" user="$2" mode="$3" n="$4"
shift 4
mount --bind "$root" "$root"
while [ "$n" -gt 0 ]; do
	mount --bind "$1" "$root$2"
	shift 2
	n=$((n - 1))
done
# A machine that hides parts of its own /proc forbids a new one.
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
[ "$mode" = rw ] || mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs unshare --user --map-user="$user" --map-group=0 --root="$root" --wd=/ -- "$@"
`

// isolate runs the image's program in namespaces.
func (c *Container) isolate(config *rest.Config, args []string, mounts []mount, pod *corev1.Pod, o Options) error {
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return fmt.Errorf("finding the files of the image: %w", err)
	}
	user, err := userOf(pod, o.UID)
	if err != nil {
		return err
	}
	for _, device := range []string{"/dev/null", "/dev/zero", "/dev/urandom"} {
		mounts = append(mounts, mount{device, device})
	}
	names, err := resolving(filepath.Join(o.Dir, "volumes", pod.Name))
	if err != nil {
		return err
	}
	mounts = append(mounts, names...)
	if err := mountPoints(root, mounts); err != nil {
		return fmt.Errorf("making the mount points of Pod %s: %w", pod.Name, err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		return fmt.Errorf("reading the address of the cluster: %w", err)
	}
	mode := "rw"
	if s := pod.Spec.Containers[0].SecurityContext; s != nil && ptr.Deref(s.ReadOnlyRootFilesystem, false) {
		mode = "ro"
	}
	words := []string{"-c", enter, "enter", root, strconv.FormatInt(user, 10), mode, strconv.Itoa(len(mounts))}
	for _, m := range mounts {
		words = append(words, m.source, m.path)
	}
	c.path, c.args, c.isolated = "/bin/sh", append(append(words, o.Entrypoint), args...), true
	// The environment of a real container, and the variables that the script's commands need.
	c.env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "KUBERNETES_SERVICE_HOST=" + host.Hostname(), "KUBERNETES_SERVICE_PORT=" + host.Port()}
	return nil
}

// userOf returns the uid of the user that the container runs as.
func userOf(pod *corev1.Pod, wanted int64) (int64, error) {
	user := wanted
	context := ptr.Deref(pod.Spec.SecurityContext, corev1.PodSecurityContext{})
	if user == 0 {
		user = ptr.Deref(context.RunAsUser, 0)
	}
	if user == 0 && ptr.Deref(context.RunAsNonRoot, false) {
		return 0, fmt.Errorf("running Pod %s: runAsNonRoot is true, and no user is said", pod.Name)
	}
	return user, nil
}

// resolving writes the files for name resolution, as a kubelet does.
func resolving(dir string) ([]mount, error) {
	hosts, resolv := filepath.Join(dir, "hosts"), filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o644); err != nil {
		return nil, fmt.Errorf("writing the names of a Pod: %w", err)
	}
	// No name outside this machine must be resolved.
	if err := os.WriteFile(resolv, nil, 0o644); err != nil {
		return nil, fmt.Errorf("writing the names of a Pod: %w", err)
	}
	return []mount{{hosts, "/etc/hosts"}, {resolv, "/etc/resolv.conf"}}, nil
}

// mountPoints creates the mount points in the image's files, as a container runtime does.
func mountPoints(root string, mounts []mount) error {
	for _, m := range append(mounts, mount{"/proc", "/proc"}) {
		path := filepath.Join(root, filepath.FromSlash(m.path))
		info, err := os.Stat(m.source)
		if err != nil {
			return err
		}
		folder := path
		if !info.IsDir() {
			folder = filepath.Dir(path)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if info.IsDir() {
			continue
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Address returns a non-loopback address of this machine. Endpoints must not have loopback
// addresses.
func Address() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("looking for an address of this machine: %w", err)
	}
	var seen []string
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String(), nil
		}
		seen = append(seen, address.String())
	}
	return "", fmt.Errorf("looking for an address of this machine that an endpoint may have: there is only %s", strings.Join(seen, ", "))
}
