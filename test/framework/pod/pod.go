// Package pod runs the container of a Pod on this machine, as a kubelet would: with the token of
// its ServiceAccount, its volumes, its arguments and its security context. The control planes of
// most tests have no kubelet.
//
//	container, err := pod.Prepare(ctx, pod.Host{…}, found, pod.Options{Dir: dir, Root: unpacked})
//	command := container.Command()
//	err = pod.Reach(ctx, host, "penstock-system", "penstock", container)
//
// With the files of an image, the container gets its own user, mount and PID namespaces, and shares
// only the network with this machine. Without them, a program runs as an ordinary process, and
// paths of volumes are replaced in its arguments.
package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/test/framework/port"
)

// accountPath is the mount path of the ServiceAccount's token in a container.
const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// Options configure the run.
type Options struct {
	// Dir is the folder for volumes. It may be an earlier container's folder, whose claims are then
	// reused.
	Dir string
	// Root is the folder with the image's files. With it, Program is not used. The container sees
	// it read-only if the Pod says so.
	Root string
	// Program replaces the image's entrypoint in a run without namespaces.
	Program string
	// Entrypoint is the path of the image's program within Root.
	Entrypoint string
	// UID is the user inside the container. 0 is the Pod's own user.
	UID int64
}

// Container is a container that is ready to run.
type Container struct {
	// Ports are the container's ports by name. They are free ports of this machine and not the
	// Pod's ports, because all containers here share one address.
	Ports map[string]int32

	path string
	args []string
	env  []string
	// isolated is true if the container runs in namespaces.
	isolated bool
}

// Command returns a command that runs the container. It can be called again after the command has
// ended.
func (c *Container) Command() *exec.Cmd {
	command := exec.Command(c.path, c.args...)
	command.Env = c.env
	command.SysProcAttr = attributes(c.isolated)
	return command
}

// mount is a volume of the container: a folder or file of this machine, and its path inside.
type mount struct {
	source, path string
}

// Prepare creates the volumes of a Pod that exists in the cluster, and requests a token. The user
// of config needs the rights to read the Pod's Secrets and to create its token.
func Prepare(ctx context.Context, config *rest.Config, pod *corev1.Pod, o Options) (*Container, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	if n := len(pod.Spec.Containers) + len(pod.Spec.InitContainers); n != 1 {
		return nil, fmt.Errorf("running Pod %s: it has %d containers, and one can be run here", pod.Name, n)
	}
	container := pod.Spec.Containers[0]
	if len(container.Command) > 0 || len(container.Env) > 0 || len(container.EnvFrom) > 0 {
		return nil, fmt.Errorf("running Pod %s: commands and environments are not supported here", pod.Name)
	}
	mounts, err := volumes(ctx, client, pod, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("making the volumes of Pod %s: %w", pod.Name, err)
	}
	account, err := serviceAccount(ctx, client, config, pod, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("taking a token of ServiceAccount %s: %w", pod.Spec.ServiceAccountName, err)
	}
	ports, args, err := freePorts(container)
	if err != nil {
		return nil, fmt.Errorf("choosing ports for Pod %s: %w", pod.Name, err)
	}
	made := &Container{Ports: ports}
	if o.Root == "" {
		return made, made.plain(config, args, append(mounts, mount{account, accountPath}), pod.Namespace, o)
	}
	return made, made.isolate(config, args, append(mounts, mount{account, accountPath}), pod, o)
}

// volumes creates a folder for each mount.
func volumes(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, dir string) ([]mount, error) {
	var found []mount
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			return nil, fmt.Errorf("there is no volume %s", m.Name)
		}
		if m.MountPath == accountPath {
			continue
		}
		volume := pod.Spec.Volumes[i]
		source := filepath.Join(dir, "volumes", pod.Name, m.Name)
		if claim := volume.PersistentVolumeClaim; claim != nil {
			source = filepath.Join(dir, "claims", claim.ClaimName)
		}
		if err := os.MkdirAll(source, 0o700); err != nil {
			return nil, err
		}
		switch {
		case volume.EmptyDir != nil || volume.PersistentVolumeClaim != nil:
		case volume.Secret != nil:
			if err := secret(ctx, client, pod.Namespace, volume.Secret, source); err != nil {
				return nil, err
			}
		case volume.ConfigMap != nil:
			if err := configMap(ctx, client, pod.Namespace, volume.ConfigMap, source); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("volume %s is of a kind that is not supported here", m.Name)
		}
		found = append(found, mount{source, m.MountPath})
	}
	return found, nil
}

func secret(ctx context.Context, client kubernetes.Interface, namespace string, source *corev1.SecretVolumeSource, dir string) error {
	found, err := client.CoreV1().Secrets(namespace).Get(ctx, source.SecretName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", source.SecretName, err)
	}
	return files(dir, found.Data, source.DefaultMode)
}

func configMap(ctx context.Context, client kubernetes.Interface, namespace string, source *corev1.ConfigMapVolumeSource, dir string) error {
	found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, source.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", source.Name, err)
	}
	content := map[string][]byte{}
	for name, text := range found.Data {
		content[name] = []byte(text)
	}
	return files(dir, content, source.DefaultMode)
}

// files writes the files of a volume.
func files(dir string, found map[string][]byte, mode *int32) error {
	for name, content := range found {
		path := filepath.Join(dir, name)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, os.FileMode(ptr.Deref(mode, 0o644))); err != nil {
			return err
		}
	}
	return nil
}

// serviceAccount writes the folder with the Pod's token. A kubelet renews tokens. This token lives
// longer than any test.
func serviceAccount(ctx context.Context, client kubernetes.Interface, config *rest.Config, pod *corev1.Pod, dir string) (string, error) {
	token, err := client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](6 * 3600)}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	folder := filepath.Join(dir, "volumes", pod.Name, "serviceaccount")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	for name, content := range map[string][]byte{"token": []byte(token.Status.Token), "ca.crt": config.CAData, "namespace": []byte(pod.Namespace)} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// freePorts replaces the container's ports in its arguments by free ports.
func freePorts(container corev1.Container) (map[string]int32, []string, error) {
	args, ports := slices.Clone(container.Args), map[string]int32{}
	for _, named := range container.Ports {
		free, err := port.Free()
		if err != nil {
			return nil, nil, err
		}
		ports[named.Name] = int32(free) // #nosec G115 -- a port
		old, said := strconv.Itoa(int(named.ContainerPort)), false
		for i, arg := range args {
			if flag, value, ok := strings.Cut(arg, "="); ok && (value == old || value == ":"+old) {
				args[i], said = flag+"="+strings.TrimSuffix(value, old)+strconv.Itoa(free), true
			}
		}
		if !said {
			return nil, nil, fmt.Errorf("no argument says that port %s is %s: %v", named.Name, old, args)
		}
	}
	return ports, args, nil
}

// plain runs the program as an ordinary process, with a kubeconfig instead of a Pod's environment.
func (c *Container) plain(config *rest.Config, args []string, mounts []mount, namespace string, o Options) error {
	if o.Program == "" {
		return errors.New("running a container: there is neither an image nor a program")
	}
	for i, arg := range args {
		flag, value, _ := strings.Cut(arg, "=")
		for _, m := range mounts {
			if value == m.path || strings.HasPrefix(value, m.path+"/") {
				args[i] = flag + "=" + m.source + strings.TrimPrefix(value, m.path)
			}
		}
	}
	account := mounts[len(mounts)-1].source
	made := clientcmdapi.NewConfig()
	made.Clusters["host"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: filepath.Join(account, "ca.crt")}
	made.AuthInfos["pod"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(account, "token")}
	made.Contexts["host"] = &clientcmdapi.Context{Cluster: "host", AuthInfo: "pod", Namespace: namespace}
	made.CurrentContext = "host"
	kubeconfig := filepath.Join(account, "kubeconfig")
	if err := clientcmd.WriteToFile(*made, kubeconfig); err != nil {
		return fmt.Errorf("writing the kubeconfig of a Pod: %w", err)
	}
	c.path, c.args, c.env = o.Program, append(args, "--kubeconfig="+kubeconfig), os.Environ()
	return nil
}
