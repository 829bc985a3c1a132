package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/penstock-project/penstock/hack/release/layout"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/pod"
)

// imageUser is a random user id as a cluster assigns it. The image does not know it.
const imageUser = 1000790000

// deployed is the name of the Deployment in artifacts/deploy, deployedIn its namespace.
const deployed, deployedIn = "penstock", "penstock-system"

// startImage applies artifacts/deploy/embedded, runs the container of its Pod from the image's
// files, and waits until kubectl can use its API. With a real kubelet, only the first command would
// be needed.
func (d *demo) startImage(ctx context.Context) {
	image := get(layout.Image(d.Image, "linux", runtime.GOARCH))
	root := filepath.Join(d.dir, "image")
	must(layout.Unpack(image, root))
	began := time.Now()
	found := d.deploy(ctx)
	// The rights of a kubelet are needed to read the Pod's Secrets and to create its token.
	kubelet := get(d.plane.User("kubelet", "system:masters"))
	container := get(pod.Prepare(ctx, kubelet.Config(), found, pod.Options{
		Dir: filepath.Join(d.dir, "kubelet"), Root: root, Entrypoint: layout.Entrypoint, UID: imageUser,
	}))
	d.server.container = container
	must(d.server.start())
	must(pod.Reach(ctx, kubelet.Config(), deployedIn, deployed, "penstock-image", container))
	d.reachable(ctx)
	must(pod.Confined(d.server.pid()))
	d.ok("kube-apiserver serves %s through the container of Pod %s (pid %d) after %s",
		olmv1alpha1.SchemeGroupVersion, found.Name, d.server.pid(), seconds(time.Since(began)))
	d.note("as user %d, from the image's own files, read-only, without capabilities, with the rights of ServiceAccount %s", imageUser, found.Spec.ServiceAccountName)
}

// deploy applies the manifests, and returns the Pod of their Deployment. There is no node, so only
// this process can run the Pod.
func (d *demo) deploy(ctx context.Context) *corev1.Pod {
	checkout := get(plane.Root())
	out, err := d.plane.Kubectl(ctx, nil, "kustomize", filepath.Join(checkout, "artifacts", "deploy", "embedded"))
	if err != nil || out.ExitCode != 0 {
		panic(stop{errors.Join(fmt.Errorf("rendering artifacts/deploy/embedded: %s", out.Stderr), err)})
	}
	d.command("kubectl apply --server-side -k artifacts/deploy/embedded")
	if out, err = d.plane.Kubectl(ctx, strings.NewReader(out.Stdout), "apply", "--server-side", "-f", "-"); err != nil || out.ExitCode != 0 {
		panic(stop{errors.Join(fmt.Errorf("applying artifacts/deploy/embedded: %s", out.Stderr), err)})
	}
	var made *corev1.Pod
	err = follow(ctx, d.cluster.core.CoreV1().Pods(deployedIn), fields.Everything(), func() error { return nil },
		func(list *corev1.PodList) []*corev1.Pod { return pointers(list.Items) },
		func(found *corev1.Pod) bool {
			made = found
			return found.Labels["app.kubernetes.io/name"] == deployed
		})
	if err != nil {
		panic(stop{&failure{claim: "the Deployment makes a Pod", want: "one within " + patience.String(), got: err.Error()}})
	}
	return made
}
