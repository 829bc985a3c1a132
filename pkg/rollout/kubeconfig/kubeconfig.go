// Package kubeconfig connects to a target cluster with a kubeconfig that another team maintains. It
// treats the kubeconfig as data: it neither runs programs nor opens files for it. The kubeconfig
// may be replaced while it is used.
package kubeconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Remedy describes how to convert a kubeconfig that Parse refuses.
const Remedy = "kubectl config view --minify --flatten --raw writes a self-contained one; replace credentials of a plugin by a token or a client certificate"

// Parse reads the current context of a kubeconfig. It refuses fields that make this process run a
// program, read a file, use a proxy, or impersonate a user; the error names each of them. Otherwise
// a user who can write a kubeconfig would gain the rights of this process on its machine.
func Parse(raw []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("it is not a kubeconfig: %w", err)
	}
	if config.CurrentContext == "" {
		return nil, errors.New("it has no current-context")
	}
	context, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("its current-context %q is not among its contexts", config.CurrentContext)
	}
	cluster, ok := config.Clusters[context.Cluster]
	if !ok {
		return nil, fmt.Errorf("its context %q has the cluster %q, which is not among its clusters", config.CurrentContext, context.Cluster)
	}
	user, ok := config.AuthInfos[context.AuthInfo]
	if !ok {
		return nil, fmt.Errorf("its context %q has the user %q, which is not among its users", config.CurrentContext, context.AuthInfo)
	}
	if refused := append(ofCluster(cluster), ofUser(user)...); len(refused) > 0 {
		slices.Sort(refused)
		return nil, fmt.Errorf("it must not have %s: %s", strings.Join(refused, ", "), Remedy)
	}
	made, err := clientcmd.NewNonInteractiveClientConfig(*config, config.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("it cannot be used: %w", err)
	}
	if !strings.HasPrefix(made.Host, "https://") {
		return nil, fmt.Errorf("its server %q must begin with https://: credentials are sent there", made.Host)
	}
	return made, nil
}

// ofCluster returns the refused fields of a cluster.
func ofCluster(cluster *clientcmdapi.Cluster) []string {
	return set(map[string]bool{
		"certificate-authority (a file)": cluster.CertificateAuthority != "",
		"proxy-url":                      cluster.ProxyURL != "",
		"insecure-skip-tls-verify":       cluster.InsecureSkipTLSVerify,
	})
}

// ofUser returns the refused fields of a user.
func ofUser(user *clientcmdapi.AuthInfo) []string {
	return set(map[string]bool{
		"exec (a program)":            user.Exec != nil,
		"auth-provider (a program)":   user.AuthProvider != nil,
		"client-certificate (a file)": user.ClientCertificate != "",
		"client-key (a file)":         user.ClientKey != "",
		"tokenFile (a file)":          user.TokenFile != "",
		"as (another name)": user.Impersonate != "" || user.ImpersonateUID != "" ||
			len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0,
	})
}

func set(found map[string]bool) []string {
	var names []string
	for name, there := range found {
		if there {
			names = append(names, name)
		}
	}
	return names
}
