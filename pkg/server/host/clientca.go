package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
)

// The host lists the trusted authorities of client certificates in this ConfigMap. Its keys are the
// authorities for users, and the authorities and allowed names for the proxy that forwards users'
// requests.
const (
	authenticationConfigMap = "extension-apiserver-authentication"
	clientCAKey             = "client-ca-file"
	proxyCAKey              = "requestheader-client-ca-file"
	proxyNamesKey           = "requestheader-allowed-names"
)

const (
	clientCATimeout = 30 * time.Second
	clientCAPoll    = 5 * time.Millisecond
)

// PrimeClientCAs returns when the authorities of client certificates are loaded, and keeps them up
// to date.
//
// The library starts to load them when it starts to serve. Until they are loaded, it does not trust
// the host's proxy. Users get a 401, and the host marks the API unavailable. If only one of the two
// authorities is known when a connection opens, the TLS handshake names only that authority. The
// other side then never sends its certificate on this connection.
func PrimeClientCAs(ctx context.Context, config *genericapiserver.RecommendedConfig, client kubernetes.Interface) error {
	authorities := config.SecureServing.ClientCA
	runner, ok := authorities.(dynamiccertificates.ControllerRunner)
	if !ok {
		return nil
	}
	found, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading configmap %s/%s: %w", metav1.NamespaceSystem, authenticationConfigMap, err)
	}
	proxy := config.Authentication.RequestHeaderConfig
	if proxy != nil && len(proxy.CAContentProvider.CurrentCABundleContent()) == 0 && found.Data[proxyCAKey] == "" {
		return fmt.Errorf("configmap %s/%s has no %s: kube-apiserver was started without --%s, and cannot send requests to other API servers",
			metav1.NamespaceSystem, authenticationConfigMap, proxyCAKey, proxyCAKey)
	}
	if err := refuseSharedCA(found.Data); err != nil {
		return fmt.Errorf("configmap %s/%s: %w", metav1.NamespaceSystem, authenticationConfigMap, err)
	}
	go runner.Run(ctx, 1)
	config.SecureServing.ClientCA = started{authorities}

	loaded := func(context.Context) (bool, error) {
		if proxy != nil && len(proxy.CAContentProvider.CurrentCABundleContent()) == 0 {
			return false, nil
		}
		clients := bytes.TrimSpace([]byte(found.Data[clientCAKey]))
		return bytes.Contains(authorities.CurrentCABundleContent(), clients), nil
	}
	if err := wait.PollUntilContextTimeout(ctx, clientCAPoll, clientCATimeout, true, loaded); err != nil {
		return fmt.Errorf("loading the authorities of client certificates from configmap %s/%s: %w",
			metav1.NamespaceSystem, authenticationConfigMap, err)
	}
	return nil
}

// refuseSharedCA refuses a host where one authority signs both users' and the proxy's certificates,
// and the proxy may have any name. There any user with a client certificate could impersonate any
// other user.
func refuseSharedCA(data map[string]string) error {
	var names []string
	if text := data[proxyNamesKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			return fmt.Errorf("reading %s: %w", proxyNamesKey, err)
		}
	}
	if len(names) > 0 || data[clientCAKey] == "" || data[proxyCAKey] == "" {
		return nil
	}
	users, err := certutil.ParseCertsPEM([]byte(data[clientCAKey]))
	if err != nil {
		return fmt.Errorf("reading %s: %w", clientCAKey, err)
	}
	proxies, err := certutil.ParseCertsPEM([]byte(data[proxyCAKey]))
	if err != nil {
		return fmt.Errorf("reading %s: %w", proxyCAKey, err)
	}
	for _, proxy := range proxies {
		for _, user := range users {
			if bytes.Equal(proxy.RawSubjectPublicKeyInfo, user.RawSubjectPublicKeyInfo) {
				return fmt.Errorf("the authority %q signs users' certificates (%s) and the proxy's (%s), and %s is empty: any user could act as any other user. "+
					"Start kube-apiserver with --requestheader-allowed-names, or with an authority of its own for the proxy",
					proxy.Subject.CommonName, clientCAKey, proxyCAKey, proxyNamesKey)
			}
		}
	}
	return nil
}

// started wraps a provider that runs already, so that the server does not run it again.
type started struct {
	dynamiccertificates.CAContentProvider
}
