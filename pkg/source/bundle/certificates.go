package bundle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CertificateProvider is a provider of certificates for webhooks.
type CertificateProvider string

const (
	// CertManager uses cert-manager with its own issuer. cert-manager injects the CA into the
	// webhook configurations.
	CertManager CertificateProvider = "cert-manager"
	// ServiceCA uses OpenShift's service CA, requested by annotations.
	ServiceCA CertificateProvider = "service-ca"
	// ByOperator leaves certificates to the operator: it creates and mounts them, and injects its
	// CA.
	ByOperator CertificateProvider = "operator"
)

// CertificateProviders returns the allowed values.
func CertificateProviders() []string {
	return []string{string(CertManager), string(ServiceCA), string(ByOperator)}
}

// validate refuses an unknown provider. Penstock would request no CA for it, as for ByOperator, and
// calls of the webhooks would fail.
func (p CertificateProvider) validate() error {
	if allowed := CertificateProviders(); p != "" && !slices.Contains(allowed, string(p)) {
		return fmt.Errorf("certificates %q: want one of %s", p, strings.Join(allowed, ", "))
	}
	return nil
}

// The lifetime of cert-manager's certificates, and the time before its end at which they are
// renewed.
const (
	certificateDuration    = "17520h0m0s"
	certificateRenewBefore = "24h0m0s"
	// maxCommonName is the limit of X.509. A Certificate with a longer common name is refused.
	maxCommonName = 64
)

// annotateCaller requests the CA of a certificate in the object by which the API server calls the
// webhook.
func (p CertificateProvider) annotateCaller(meta *metav1.ObjectMeta, namespace, certificate string) {
	switch p {
	case CertManager:
		metav1.SetMetaDataAnnotation(meta, "cert-manager.io/inject-ca-from", namespace+"/"+certificate)
	case ServiceCA:
		metav1.SetMetaDataAnnotation(meta, "service.beta.openshift.io/inject-cabundle", "true")
	}
}

func (p CertificateProvider) annotateService(service *corev1.Service, certificate string) {
	if p == ServiceCA {
		metav1.SetMetaDataAnnotation(&service.ObjectMeta, "service.beta.openshift.io/serving-cert-secret-name", certificate)
	}
}

// certificates adds an issuer and a certificate of cert-manager for each Service.
func (in *installation) certificates() error {
	if in.options.Certificates != CertManager {
		return nil
	}
	for _, deployment := range in.webhookServers() {
		service := serviceName(deployment)
		certificate := certificateName(service)
		issuer := issuerName(certificate)
		host := service + "." + in.options.InstallNamespace
		spec := map[string]any{
			"dnsNames":    []any{host, host + ".svc", host + ".svc.cluster.local"},
			"duration":    certificateDuration,
			"renewBefore": certificateRenewBefore,
			"issuerRef":   map[string]any{"name": issuer},
			"secretName":  certificate,
			"usages":      []any{"server auth"},
		}
		if len(host) <= maxCommonName {
			spec["commonName"] = host
		}
		if err := in.certManager("Issuer", issuer, map[string]any{"selfSigned": map[string]any{}}); err != nil {
			return err
		}
		if err := in.certManager("Certificate", certificate, spec); err != nil {
			return err
		}
	}
	return nil
}

func (in *installation) certManager(kind, name string, spec map[string]any) error {
	return in.addContent(map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": in.options.InstallNamespace}, "spec": spec,
	}, "", []any{"spec", "webhookdefinitions"})
}

type certificateMount struct{ volume, path, certificate, key string }

func certificateMounts() []certificateMount {
	return []certificateMount{
		{"webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"},
		{"apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"},
	}
}

// mount mounts the certificate's Secret into the containers of a pod, where operators expect it. It
// removes the bundle's own mounts at these paths, with their volumes.
func (p CertificateProvider) mount(pod map[string]any, secret string) {
	if p != CertManager && p != ServiceCA {
		return
	}
	mounts := certificateMounts()
	replaced := map[string]bool{}
	for _, one := range mounts {
		replaced[one.volume] = true
	}
	for _, container := range containers(pod) {
		for _, mount := range objectsOf(container["volumeMounts"]) {
			if slices.ContainsFunc(mounts, func(one certificateMount) bool { return mount["mountPath"] == one.path }) {
				if name, ok := mount["name"].(string); ok {
					replaced[name] = true
				}
			}
		}
	}
	goes := func(item any) bool {
		one, _ := item.(map[string]any)
		name, _ := one["name"].(string)
		return replaced[name]
	}
	for _, container := range containers(pod) {
		kept := slices.DeleteFunc(slices.Clone(list(container["volumeMounts"])), goes)
		for _, one := range mounts {
			kept = append(kept, map[string]any{"name": one.volume, "mountPath": one.path})
		}
		container["volumeMounts"] = kept
	}
	volumes := slices.DeleteFunc(slices.Clone(list(pod["volumes"])), goes)
	for _, one := range mounts {
		volumes = append(volumes, map[string]any{"name": one.volume, "secret": map[string]any{
			"secretName": secret,
			"items": []any{
				map[string]any{"key": "tls.crt", "path": one.certificate},
				map[string]any{"key": "tls.key", "path": one.key},
			},
		}})
	}
	pod["volumes"] = volumes
}
