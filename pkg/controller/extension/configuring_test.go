package extension

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/source/bundle/config"
)

// TestConfiguring: if a bundle requires a namespace to watch, the message has a command that sets
// it, and the bundle accepts the result.
func TestConfiguring(t *testing.T) {
	for name, tc := range map[string]struct {
		modes   config.InstallModes
		given   string
		command bool
	}{
		"own":      {config.InstallModes{OwnNamespace: true}, `{}`, true},
		"ownOther": {config.InstallModes{OwnNamespace: true}, `{"watchNamespace":"sea"}`, true},
		"single":   {config.InstallModes{SingleNamespace: true}, `{}`, true},
		"all":      {config.InstallModes{AllNamespaces: true}, `{"watchNamespace":"sea"}`, false},
		"more":     {config.InstallModes{OwnNamespace: true}, `{"other":1}`, false},
	} {
		_, err := config.Parse([]byte(tc.given), tc.modes, "home")
		var wrong *config.Errors
		if !errors.As(err, &wrong) {
			t.Fatalf("%s: %v", name, err)
		}
		said, command, found := strings.Cut(configuring(&desired{Name: "oadp", Namespace: "home"}, wrong), ": kubectl patch clusterextension oadp --type=merge -p '")
		if said == "" || found != tc.command {
			t.Errorf("%s: %q, %q", name, said, command)
		}
		if !found {
			continue
		}
		var patch struct{ Spec extension.Spec }
		if err := json.Unmarshal([]byte(strings.TrimSuffix(command, "'")), &patch); err != nil || patch.Spec.Config == nil || patch.Spec.Config.ConfigType != "Inline" {
			t.Fatalf("%s: %s: %v", name, command, err)
		}
		inline := strings.ReplaceAll(string(patch.Spec.Config.Inline), "NAMESPACE", "sea")
		if _, err := config.Parse([]byte(inline), tc.modes, "home"); err != nil {
			t.Errorf("%s: the bundle does not take %s: %v", name, inline, err)
		}
	}
}
