package plane

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/template"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// Addresses of a real node, in addition to nodeIP. Its network namespace has no other network.
const (
	nodeRouter = "10.231.0.254"
	podRange   = "10.244.0.0/24"
	// dnsIP has no DNS server: a real node has no DNS.
	dnsIP = "10.96.0.10"
)

// containerdSocket is below /run, which is a tmpfs of the namespace.
const containerdSocket = "/run/containerd/containerd.sock"

// pauseImage is the image of the first container of every Pod.
const pauseImage = "penstock.local/pause:1"

// nodeFiles are the configuration files of the node's programs, by file name.
var nodeFiles = map[string]string{
	"cni/10-bridge.conflist": `{"cniVersion":"1.0.0","name":"bridge","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,"hairpinMode":true,
"ipam":{"type":"host-local","ranges":[[{"subnet":"{{.PodRange}}"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
`,
	"resolv.conf": "nameserver {{.DNS}}\n",
	"containerd.toml": `version = 3
[grpc]
  address = "{{.Socket}}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{{.Pause}}"
[plugins."io.containerd.cri.v1.runtime"]
  # Without CAP_SYS_RESOURCE no process can get a score below ours.
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{{.Root}}/usr/lib/cni"]
    conf_dir = "{{.Dir}}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{{.Root}}/usr/sbin/runc"
        SystemdCgroup = false
`,
	"kubelet.yaml": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /{{.Cgroup}}
containerRuntimeEndpoint: unix://{{.Socket}}
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "{{.CA}}"}}
authorization: {mode: Webhook}
clusterDNS: [{{.DNS}}]
clusterDomain: cluster.local
resolvConf: "{{.Dir}}/resolv.conf"
failSwapOn: false
makeIPTablesUtilChains: false
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, imagefs.available: 0%, nodefs.inodesFree: 0%, imagefs.inodesFree: 0%}
imageGCHighThresholdPercent: 100
maxPods: 200
`,
	"kube-proxy.yaml": `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: {{.Node}}
clusterCIDR: {{.PodRange}}
clientConnection: {kubeconfig: "{{.Dir}}/kube-proxy.kubeconfig"}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
metricsBindAddress: 127.0.0.1:10249
`,
}

// kernelSettings are settings of the whole machine that kubelet sets. In the namespace each setting
// is replaced by a file of the plane.
var kernelSettings = map[string]string{"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1"}

// prepareNode creates network, mounts and files of a real node in the namespaces of this process.
func (p *Plane) prepareNode() error {
	if os.Getpid() != 1 || os.Getenv(isolated) == "" {
		return errors.New("the process is not in namespaces of its own (see plane.RunIsolated)")
	}
	mounted, err := mounts()
	if err != nil {
		return err
	}
	p.hasNode, p.formerMounts = true, mounted
	if err := p.pki.writeClient("apiserver-kubelet", "kube-apiserver-kubelet", "system:masters"); err != nil {
		return err
	}
	for _, folder := range []string{"cni", "var/lib/kubelet", "var/lib/containerd", "var/log", "kernel"} {
		if err := os.MkdirAll(filepath.Join(p.dir, folder), 0o755); err != nil {
			return err
		}
	}
	values := map[string]string{"Dir": p.dir, "Root": p.packages(), "Cgroup": os.Getenv(isolated), "CA": p.pki.file("ca.crt"),
		"Socket": containerdSocket, "Pause": pauseImage, "PodRange": podRange, "DNS": dnsIP, "Node": nodeName}
	for file, text := range nodeFiles {
		var content bytes.Buffer
		if err := template.Must(template.New(file).Parse(text)).Execute(&content, values); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(p.dir, file), content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if err := p.network(); err != nil {
		return err
	}
	return p.mount()
}

// network creates a device with the node's address. The other end of the pair is unused: kernels
// without dummy devices also have veth.
func (p *Plane) network() error {
	for _, line := range []string{
		"link add node0 type veth peer name node0-peer",
		"link set node0-peer up",
		"addr add " + nodeIP + "/24 dev node0",
		"link set node0 up",
		"route add default via " + nodeRouter + " dev node0",
	} {
		if err := ip(line); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("1"), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// mount mounts folders of the plane where the programs write.
func (p *Plane) mount() error {
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		return err
	}
	var pairs [][2]string
	bind := func(from, to string) { pairs = append(pairs, [2]string{from, to}) }
	bind(filepath.Join(p.dir, "var/lib"), "/var/lib")
	bind(filepath.Join(p.dir, "var/log"), "/var/log")
	bind("/var/lib/kubelet", "/var/lib/kubelet")
	for setting, value := range kernelSettings {
		file := filepath.Join(p.dir, "kernel", strings.ReplaceAll(setting, "/", "."))
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
			return err
		}
		bind(file, "/proc/sys/"+setting)
	}
	// runc restarts itself without LD_LIBRARY_PATH, so the loader's cache must contain its
	// libraries.
	known, err := os.ReadFile("/etc/ld.so.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	conf, cache := filepath.Join(p.dir, "ld.so.conf"), filepath.Join(p.dir, "ld.so.cache")
	if err := os.WriteFile(conf, []byte(string(known)+"\n"+strings.Join(p.libraries(), "\n")+"\n"), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("ldconfig", "-X", "-f", conf, "-C", cache).CombinedOutput(); err != nil {
		return fmt.Errorf("ldconfig: %w: %s", err, out)
	}
	bind(cache, "/etc/ld.so.cache")
	for _, pair := range pairs {
		if err := syscall.Mount(pair[0], pair[1], "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", pair[0], pair[1], err)
		}
	}
	// Mounts by kubelet must propagate to the namespaces of containers.
	if err := syscall.Mount("", "/var/lib/kubelet", "", syscall.MS_SHARED|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("sharing /var/lib/kubelet: %w", err)
	}
	return nil
}

// packages returns the folder of the unpacked packages.
func (p *Plane) packages() string { return filepath.Join(p.options.Node, "root") }

func (p *Plane) libraries() []string {
	folders, _ := filepath.Glob(filepath.Join(p.packages(), "usr/lib/*-linux-gnu*"))
	more, _ := filepath.Glob(filepath.Join(p.packages(), "lib/*-linux-gnu*"))
	return append(folders, more...)
}

// nodeAPIServerArgs returns the arguments of kube-apiserver that a real node needs.
func (p *Plane) nodeAPIServerArgs() []string {
	return []string{
		"--bind-address=0.0.0.0",
		"--advertise-address=" + nodeIP,
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-client-certificate=" + p.pki.file("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + p.pki.file("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// nodeEnv returns variables with which programs find the packages' programs and libraries.
func (p *Plane) nodeEnv() []string {
	return []string{"PATH=" + p.options.Node + ":" + p.packages() + "/usr/sbin:" + os.Getenv("PATH"),
		"LD_LIBRARY_PATH=" + strings.Join(p.libraries(), ":")}
}

// startNode starts the programs of a real node.
func (p *Plane) startNode(ctx context.Context) error {
	if _, err := p.newAccess(filepath.Join(p.dir, "kubelet.kubeconfig"), "system:node:"+nodeName, "system:nodes"); err != nil {
		return err
	}
	if _, err := p.newAccess(filepath.Join(p.dir, "kube-proxy.kubeconfig"), "system:kube-proxy"); err != nil {
		return err
	}
	if err := p.createForNode(ctx); err != nil {
		return err
	}
	if err := p.startPrograms(ctx); err != nil {
		return err
	}
	pause, err := ProgramImage(filepath.Join(p.options.Node, "pause"))
	if err != nil {
		return err
	}
	return p.Import(ctx, pauseImage, pause)
}

// startPrograms starts nodePrograms. kubelet exits if containerd does not answer, so containerd
// must be ready first.
func (p *Plane) startPrograms(ctx context.Context) error {
	for _, program := range nodePrograms() {
		started, err := p.launchNode(program)
		if err != nil {
			return err
		}
		p.processes = append(p.processes, started)
		if program != "containerd" {
			continue
		}
		err = p.until(ctx, "containerd to answer", func(ctx context.Context) error { return p.ctr(ctx, nil, "version") }, started)
		if err != nil {
			return err
		}
	}
	return nil
}

// launchNode starts one of nodePrograms.
func (p *Plane) launchNode(program string) (*Process, error) {
	l := launch{dir: p.dir, name: program, path: filepath.Join(p.options.Node, program), detached: p.options.Detached, env: p.nodeEnv()}
	switch program {
	case "containerd":
		l.args = []string{"--config", filepath.Join(p.dir, "containerd.toml")}
	case "kubelet":
		l.args = []string{"--config=" + filepath.Join(p.dir, "kubelet.yaml"), "--kubeconfig=" + filepath.Join(p.dir, "kubelet.kubeconfig"),
			"--hostname-override=" + nodeName, "--node-ip=" + nodeIP}
	case "kube-proxy":
		l.args = []string{"--config=" + filepath.Join(p.dir, "kube-proxy.yaml")}
	}
	return l.start()
}

// Reboot kills all programs and containers of a real node and starts the programs again, like a
// restart of the machine.
func (p *Plane) Reboot(ctx context.Context) error {
	var others []*Process
	for _, running := range p.processes {
		if !slices.Contains(nodePrograms(), running.name) {
			others = append(others, running)
		} else if err := running.Kill(); err != nil {
			return err
		}
	}
	p.processes = others
	// Kill the shims first. Then their containers become children of this process, which is the
	// first process of its PID namespace.
	for _, is := range []func(process string) bool{isShim, isContained} {
		found, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return err
		}
		for _, process := range found {
			pid, _ := strconv.Atoi(filepath.Base(process))
			if pid > 1 && is(process) {
				// Both calls fail if the process has ended or its own parent waits for it.
				_ = syscall.Kill(pid, syscall.SIGKILL)
				_, _ = syscall.Wait4(pid, nil, 0, nil)
			}
		}
	}
	return p.startPrograms(ctx)
}

// isShim reports whether a folder in /proc belongs to a containerd shim.
func isShim(process string) bool {
	name, err := os.ReadFile(filepath.Join(process, "comm"))
	return err == nil && strings.HasPrefix(string(name), "containerd-shim")
}

// isContained reports whether a folder in /proc belongs to a process in a container of this node.
func isContained(process string) bool {
	cgroups, err := os.ReadFile(filepath.Join(process, "cgroup"))
	return err == nil && strings.Contains(string(cgroups), "/"+os.Getenv(isolated)+"/")
}

// volumes is the number of volumes of each access mode.
const volumes = 4

// Volume returns the folder of a volume of a real node.
func (p *Plane) Volume(name string) string { return filepath.Join(p.dir, "volumes", name) }

// createForNode creates the rights of kube-proxy, a default StorageClass, and volumes of it that
// any user of a container can write.
func (p *Plane) createForNode(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "node-proxier"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-proxier"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:kube-proxy"}},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("granting what kube-proxy needs: %w", err)
	}
	const class = "local"
	if _, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: class, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "kubernetes.io/no-provisioner",
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the StorageClass: %w", err)
	}
	for mode, prefix := range map[corev1.PersistentVolumeAccessMode]string{corev1.ReadWriteOnce: "shared", corev1.ReadWriteOncePod: "single"} {
		for i := range volumes {
			name := fmt.Sprintf("%s-%d", prefix, i+1)
			if err := os.MkdirAll(p.Volume(name), 0o755); err != nil {
				return fmt.Errorf("making a volume: %w", err)
			}
			if err := os.Chmod(p.Volume(name), 0o777); err != nil {
				return fmt.Errorf("making a volume: %w", err)
			}
			if _, err := client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.PersistentVolumeSpec{
					Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")},
					AccessModes:            []corev1.PersistentVolumeAccessMode{mode},
					StorageClassName:       class,
					PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: p.Volume(name), Type: ptr.To(corev1.HostPathDirectory)}},
				},
			}, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating volume %s: %w", name, err)
			}
		}
	}
	return nil
}

// Import imports an image or its index into a real node, under a tag and under its digest, as if
// the node had pulled it. Another process may have started the node.
func (p *Plane) Import(ctx context.Context, reference string, image mutate.Appendable) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("naming an image: %w", err)
	}
	dir, err := os.MkdirTemp("", "penstock-image-")
	if err != nil {
		return fmt.Errorf("writing the image %s: %w", reference, err)
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": tag.TagStr()}},
	})); err != nil {
		return fmt.Errorf("writing the image %s: %w", reference, err)
	}
	reader, writer := io.Pipe()
	go func() {
		packed := tar.NewWriter(writer)
		writer.CloseWithError(errors.Join(packed.AddFS(os.DirFS(dir)), packed.Close()))
	}()
	defer reader.Close()
	// Without --local, containerd stores a tagged image under its tag only.
	return p.ctr(ctx, reader, "images", "import", "--local", "--base-name", tag.Context().Name(), "--digests", "-")
}

// ctr runs containerd's own client.
func (p *Plane) ctr(ctx context.Context, stdin io.Reader, args ...string) error {
	if p.options.Node == "" {
		return errors.New("a simulated node runs no containers: start a real one")
	}
	socket := containerdSocket
	if !p.hasNode {
		found, err := processesOf(p.dir)
		if err != nil {
			return err
		}
		for _, process := range found {
			if process.program == holder {
				socket = fmt.Sprintf("/proc/%d/root%s", process.pid, containerdSocket)
			}
		}
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.options.Node, "ctr"), append([]string{"-a", socket, "-n", "k8s.io"}, args...)...)
	cmd.Env, cmd.Stdin = append(os.Environ(), p.nodeEnv()...), stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// stopNode kills all other processes in the namespaces and removes the node's mounts and network.
// Then the folder can be removed and another node can start.
func (p *Plane) stopNode() error {
	// From the first process of a PID namespace, -1 reaches all other processes of the namespace
	// and none outside. An error means that there are no others.
	_ = syscall.Kill(-1, syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := p.until(ctx, "the processes of the node to end", allEnded); err != nil {
		return err
	}
	return errors.Join(p.unmount(), p.removeNetwork())
}

// allEnded returns an error while any other process runs.
func allEnded(context.Context) error {
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, process := range found {
		if pid, _ := strconv.Atoi(filepath.Base(process)); pid != os.Getpid() && !ended(pid) {
			return fmt.Errorf("process %d runs", pid)
		}
	}
	return nil
}

// mount is a line of the mount table.
type mount struct{ id, path string }

// mounts returns the mounts of this process, oldest first.
func mounts() ([]mount, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mounts: %w", err)
	}
	var found []mount
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		found = append(found, mount{id: fields[0], path: fields[4]})
	}
	return found, nil
}

// unmount removes the node's mounts. Removing one mount can remove further mounts, so the table is
// read again after each.
func (p *Plane) unmount() error {
	for {
		left, err := mounts()
		if err != nil {
			return err
		}
		left = slices.DeleteFunc(left, func(m mount) bool { return slices.Contains(p.formerMounts, m) })
		if len(left) == 0 {
			return nil
		}
		last := left[len(left)-1].path
		if err := syscall.Unmount(last, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", last, err)
		}
	}
}

// removeNetwork removes all devices of the namespace except the loopback device, and the rules of
// kube-proxy.
func (p *Plane) removeNetwork() error {
	devices, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("reading the network devices: %w", err)
	}
	for _, device := range devices {
		if device.Flags&net.FlagLoopback != 0 {
			continue
		}
		// The kernel removes a Pod's device some time after the Pod, and both ends of a pair at
		// once.
		if err := ip("link del " + device.Name); err != nil {
			if _, gone := net.InterfaceByName(device.Name); gone == nil {
				return err
			}
		}
	}
	flush := exec.Command(filepath.Join(p.packages(), "usr/sbin/nft"), "flush", "ruleset")
	flush.Env = append(os.Environ(), p.nodeEnv()...)
	if out, err := flush.CombinedOutput(); err != nil {
		return fmt.Errorf("removing the rules of kube-proxy: %w: %s", err, out)
	}
	return nil
}
