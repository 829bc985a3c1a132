package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// Routing is the argument with which kube-apiserver connects directly to the endpoints of a
// Service. Without it, the Service's address must be forwarded.
const Routing = "--enable-aggregator-routing=true"

// Reach makes a container the endpoint of a Service, as a kubelet and the endpoints controller do
// when it is ready.
func Reach(ctx context.Context, config *rest.Config, namespace, service, name string, container *Container) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	address, err := Address()
	if err != nil {
		return err
	}
	made := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "test.penstock.dev",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
	}
	for port, number := range container.Ports {
		made.Ports = append(made.Ports, discoveryv1.EndpointPort{Name: ptr.To(port), Port: ptr.To(number), Protocol: ptr.To(corev1.ProtocolTCP)})
	}
	slices := client.DiscoveryV1().EndpointSlices(namespace)
	if err := slices.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the former endpoints of Service %s: %w", service, err)
	}
	if _, err := slices.Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("writing the endpoints of Service %s: %w", service, err)
	}
	return nil
}
