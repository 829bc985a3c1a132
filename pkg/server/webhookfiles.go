package server

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	apiserverinstall "k8s.io/apiserver/pkg/apis/apiserver/install"
	"sigs.k8s.io/yaml"
)

// validateWebhookFiles refuses an --admission-control-config-file that names folders of webhooks.
// Policies from files work (initializers.Schemas). Webhooks from files do not: only kube-apiserver
// has their defaults and validation.
func (o *Options) validateWebhookFiles() []error {
	file := o.Recommended.Admission.ConfigFile
	if file == "" {
		return nil
	}
	refuse := func(err error) error { return fmt.Errorf("--admission-control-config-file %s: %w", file, err) }
	scheme := runtime.NewScheme()
	apiserverinstall.Install(scheme)
	plugins := []string{mutatingwebhook.PluginName, validatingwebhook.PluginName}
	configurations, err := admission.ReadAdmissionConfiguration(plugins, file, scheme)
	if err != nil {
		return []error{refuse(err)}
	}
	var errs []error
	for _, plugin := range plugins {
		folder, err := staticManifestsDir(configurations, plugin)
		switch {
		case err != nil:
			errs = append(errs, refuse(fmt.Errorf("plugin %s: %w", plugin, err)))
		case folder != "":
			errs = append(errs, refuse(fmt.Errorf("plugin %s: staticManifestsDir is %q, and must be empty: "+
				"Penstock calls the webhooks of the cluster's API only; create them there, or remove the field", plugin, folder)))
		}
	}
	return errs
}

// staticManifestsDir returns the folder of manifests in the configuration of a plugin, or "".
func staticManifestsDir(configurations admission.ConfigProvider, plugin string) (string, error) {
	reader, err := configurations.ConfigFor(plugin)
	if err != nil || reader == nil {
		return "", err
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return "", err
	}
	var configuration struct {
		StaticManifestsDir string `json:"staticManifestsDir"`
	}
	err = yaml.Unmarshal(data, &configuration)
	return configuration.StaticManifestsDir, err
}
