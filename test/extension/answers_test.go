//go:build integration

package extension_test

import (
	"strings"

	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/reference"
)

// admin returns a user with all rights.
func (w shared) admin() person {
	w.t.Helper()
	return person{Access: w.User("admin", "system:masters"), name: "admin"}
}

// answers runs the last command that the reference lists for a reason of an extension, and returns
// its output. The editor changes nothing, and questions are answered with yes. The command is
// retried while another scenario's catalog has not been read yet.
func (w shared) answers(who person, name, reason string) string {
	w.t.Helper()
	page, heading := "clusterextension-status.md", "Reasons of Ready"
	if reason == "Collision" {
		page, heading = "reasons.md", "Of revisions"
	}
	commands := reference.Commands(w.t, page, heading, reason)
	command := strings.ReplaceAll(commands[len(commands)-1], "argocd", name)
	if strings.HasPrefix(command, "kubectl penstock ") {
		var out plugin.Output
		poll.Eventually(w.t, "catalogs are read", func() (bool, string) {
			out = plugin.User{Kubeconfig: who.Kubeconfig(), Input: plugin.Yes{}}.Run(w.t, command)
			return !strings.Contains(out.Stdout+out.Stderr, "has not been read yet"), out.Stdout
		})
		if out.ExitCode > 1 { // exit code 1 means that a user has to act
			w.t.Errorf("reason %s: %s", reason, out)
		}
		return out.Stdout + out.Stderr
	}
	out := who.KubectlEnv([]string{"KUBE_EDITOR=true"}, "", reference.Words(command)[1:]...)
	if out.ExitCode != 0 {
		w.t.Errorf("reason %s: %s", reason, out)
	}
	return out.Stdout + out.Stderr
}
