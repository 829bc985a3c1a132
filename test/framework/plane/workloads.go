package plane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// nodeName is the only Node of a plane with workloads, simulated or real.
const nodeName = "node-1"

// startWorkloads runs the controllers and the scheduler. They serve nothing, so they need no ports.
// Each runs alone, so they need no leader election.
func (p *Plane) startWorkloads(detached bool) error {
	controllers, err := p.newAccess(filepath.Join(p.dir, "controller-manager.kubeconfig"), "system:kube-controller-manager")
	if err != nil {
		return err
	}
	if _, err := p.spawn("kube-controller-manager", detached,
		"--kubeconfig="+controllers.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--use-service-account-credentials",
		// The default of 20 requests a second delays the start to 5 s.
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
		// The default interval of autoscalers is 15 s.
		"--horizontal-pod-autoscaler-sync-period=1s",
		"--service-account-private-key-file="+p.pki.file("sa.key"),
		"--root-ca-file="+p.pki.file("ca.crt"),
		"--cluster-signing-cert-file="+p.pki.file("ca.crt"),
		"--cluster-signing-key-file="+p.pki.file("ca.key"),
	); err != nil {
		return err
	}

	scheduler, err := p.newAccess(filepath.Join(p.dir, "scheduler.kubeconfig"), "system:kube-scheduler")
	if err != nil {
		return err
	}
	_, err = p.spawn("kube-scheduler", detached,
		"--kubeconfig="+scheduler.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=1000",
	)
	return err
}

// startKwok runs the node simulator. It keeps the Node ready and simulates the lifecycle of Pods,
// with the stages of its release and our own.
func (p *Plane) startKwok(detached bool) error {
	kwok, err := p.newAccess(filepath.Join(p.dir, "kwok.kubeconfig"), "kwok", "system:masters")
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + kwok.Kubeconfig(),
		"--manage-single-node=" + nodeName,
		// With leases the Node itself need not be rewritten every few seconds.
		"--node-lease-duration-seconds=40",
	}
	stages := filepath.Join(p.tools, "kwok-stages")
	files, err := os.ReadDir(stages)
	if err != nil {
		return fmt.Errorf("reading the stages of kwok: %w", err)
	}
	for _, file := range files {
		args = append(args, "--config="+filepath.Join(stages, file.Name()))
	}
	ours := filepath.Join(p.dir, "pod-unpullable.yaml")
	if err := os.WriteFile(ours, []byte(unpullableStage), 0o600); err != nil {
		return fmt.Errorf("writing a stage of kwok: %w", err)
	}
	args = append(args, "--config="+ours)
	_, err = p.spawn("kwok", detached, args...)
	return err
}

// waitForNode waits until a Deployment in the default namespace could become Available: the Node is
// ready and has no taints, and Pods have a ServiceAccount.
func (p *Plane) waitForNode(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if p.options.Node == "" {
		if _, err := client.CoreV1().Nodes().Create(ctx, node(), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %s: %w", nodeName, err)
		}
	}
	return p.until(ctx, "a node that takes pods", func(ctx context.Context) error {
		return takesPods(ctx, client)
	}, p.processes...)
}

// takesPods returns nil if a Pod of the default namespace can be created, bound and run.
func takesPods(ctx context.Context, client kubernetes.Interface) error {
	node, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node %s is tainted %s", nodeName, node.Spec.Taints[0].ToString())
	}
	if !isReady(node) {
		return fmt.Errorf("node %s is not ready", nodeName)
	}
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// node returns a Node that is large enough for every operator in the tests.
func node() *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName,
			Labels: map[string]string{
				corev1.LabelHostname:   nodeName,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
				"type":                 "kwok",
			},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}
