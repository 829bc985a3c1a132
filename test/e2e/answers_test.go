//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/reference"
)

// answerCase is an extension for which why returns a reason, and the effect of the reference's
// command for that reason.
type answerCase struct {
	// have sets up the extension.
	have func(a *answers)
	// example replaces the example names in the command.
	example []string
	// says is part of the output of a command that only reads.
	says string
	// solved waits until the problem is solved. It is nil if the command only shows the problem,
	// and a user decides.
	solved func(a *answers)
}

// answers is a running case.
type answers struct {
	sharedPlane
	// name is the name of the extension and its namespace.
	name string
	// revision is the revision that why explains.
	revision string
	// folder contains valid manifests.
	folder string
}

func (a *answers) create(d draft) {
	a.t.Helper()
	a.revision = d.Name
	a.MustKubectlInput(d.String(), "create", "-f", "-")
}

func (a *answers) rev(number int) draft { return revision(a.name, number) }

func (a *answers) settings(data ...string) object { return configMap(a.name, "settings", data...) }

// homeless returns a Deployment that fits on no node.
func (a *answers) homeless() object {
	server := deployment(a.name, "server", "example.com/server:v2")
	server["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["nodeSelector"] = map[string]any{"nowhere": "yes"}
	return server
}

// deployed returns a function that waits until a revision has succeeded.
func deployed(number int) func(*answers) {
	return func(a *answers) { a.succeeded(fmt.Sprintf("%s-%d", a.name, number)) }
}

// deletes starts the deletion of the case's revision.
func (a *answers) deletes() { a.MustKubectl("delete", "cer", a.revision, "--wait=false") }

func (a *answers) isGone() { a.gone("cer/" + a.revision) }

func answerCases() map[string]answerCase {
	return map[string]answerCase{
		"Paused": {
			have: func(a *answers) {
				a.create(a.rev(1).Phase("all", a.settings("x=1")))
				a.succeeded(a.revision)
				a.MustKubectl("patch", "cer", a.revision, "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`)
			},
			solved: func(a *answers) {
				a.condition(a.revision, "Available", "True")
				a.value("Active", ".spec.lifecycleState", "cer/"+a.revision)
			},
		},
		"Proposed": {
			have: func(a *answers) {
				a.roll(a.rev(1).Phase("all", a.settings("x=1")))
				a.create(a.rev(2).Phase("all", a.settings("x=2")).With("lifecycleState", "Paused"))
			},
			solved: deployed(2),
		},
		"Collision": {
			have: func(a *answers) {
				a.MustKubectlInput(configMap(a.name, "taken", "x=theirs").String(), "create", "-f", "-")
				a.create(a.rev(1).Phase("all", configMap(a.name, "taken", "x=1")))
			},
			solved: deployed(2),
		},
		"ApplyRejected": {
			have: func(a *answers) {
				service := manifest("v1", "Service", a.name, "web")
				service["spec"] = map[string]any{"ports": []any{map[string]any{"port": 70000}}}
				a.create(a.rev(1).Phase("all", service))
			},
			solved: deployed(2),
		},
		"KindDefinedLater": {
			have: func(a *answers) {
				a.create(a.rev(1).Phase("first", instance("Skiff", a.name, "one")).Phase("later", definition("Skiff")))
			},
			solved: deployed(2),
		},
		"KindNotServed": {
			have: func(a *answers) { a.create(a.rev(1).Phase("all", instance("Shoal", a.name, "one"))) },
			says: "configmaps",
			solved: func(a *answers) {
				a.MustKubectlInput(definition("Shoal").String(), "create", "-f", "-")
				a.succeeded(a.revision)
			},
		},
		"ProbeFailed": {
			have: func(a *answers) {
				server := deployment(a.name, "server", "example.com/server:v1")
				a.roll(a.rev(1).Phase("all", server))
				a.create(a.rev(2).Phase("all", a.homeless()))
			},
			solved: deployed(3),
		},
		"BudgetExceeded": {
			have: func(a *answers) {
				a.roll(a.rev(1).Phase("all", a.settings("x=1"), configMap(a.name, "more", "x=1")))
				a.create(a.rev(2).Phase("all"))
				a.revision = a.name + "-1"
			},
			says:   "ConfigMap",
			solved: func(a *answers) { a.gone("configmap/settings", "--namespace="+a.name) },
		},
		"InstancesExist": {
			have: func(a *answers) {
				a.create(a.rev(1).Phase("all", definition("Islet")))
				a.succeeded(a.revision)
				a.MustKubectlInput(instance("Islet", a.name, "theirs").String(), "create", "-f", "-")
				a.deletes()
			},
			says:   "CustomResourceDefinition",
			solved: (*answers).isGone,
		},
		"NotEmpty": {
			have: func(a *answers) {
				inside := a.name + "-inside"
				a.create(a.rev(1).Phase("all", manifest("v1", "Namespace", "", inside)))
				a.succeeded(a.revision)
				a.MustKubectlInput(deployment(inside, "theirs", "example.com/theirs:v1").String(), "create", "-f", "-")
				a.deletes()
			},
			says:   "Namespace",
			solved: (*answers).isGone,
		},
		"Contested": {
			have: func(a *answers) {
				a.create(a.rev(1).Phase("all", a.settings("x=1")))
				a.succeeded(a.revision)
				for range 6 {
					a.value("1", ".data.x", "configmap/settings", "--namespace="+a.name)
					a.MustKubectl("patch", "configmap", "settings", "--namespace="+a.name, "--type=merge", "-p", `{"data":{"x":"theirs"}}`)
				}
			},
			says: "ConfigMap",
		},
		"Terminating": {
			have: func(a *answers) {
				a.create(a.rev(1).Phase("all", a.settings("x=1")))
				a.succeeded(a.revision)
				in := "--namespace=" + a.name
				a.MustKubectl("patch", "configmap", "settings", in, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
				a.MustKubectl("delete", "configmap", "settings", in, "--wait=false")
			},
			example: []string{"widget example", "configmap settings", "--namespace default", "--namespace answer-terminating"},
			solved:  func(a *answers) { a.condition(a.revision, "Available", "True") },
		},
		"ProgressDeadlineExceeded": {
			have: func(a *answers) {
				a.roll(a.rev(1).Phase("all", deployment(a.name, "server", "example.com/server:v1")))
				a.create(a.rev(2).Phase("all", a.homeless()).With("progressDeadlineMinutes", 1))
			},
			solved: deployed(3),
		},
		"TargetUnavailable": {
			have: func(a *answers) {
				a.create(a.rev(1).Phase("all", a.settings("x=1")).With("targetRef", map[string]any{"name": "nowhere"}))
			},
		},
	}
}

// answerScenarios tests the reasons of the reference that are cheap to cause. Each scenario runs
// the printed command of the reference, which must help.
func answerScenarios() map[string]scenario {
	scenarios := map[string]scenario{}
	for reason, one := range answerCases() {
		scenarios[reason] = func(w sharedPlane) { w.answer(reason, one) }
	}
	return scenarios
}

func (w sharedPlane) answer(reason string, one answerCase) {
	a := &answers{sharedPlane: w, name: w.namespace("answer-" + strings.ToLower(reason)), folder: w.t.TempDir()}
	if err := os.WriteFile(filepath.Join(a.folder, "all.yaml"), []byte(configMap(a.name, "good", "x=1").String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
	one.have(a)
	given := a.why(reason)
	documented := strings.NewReplacer(append(one.example, "argocd-2", a.revision, "argocd", a.name, "./manifests", a.folder)...).Replace(reference.Commands(w.t, "reasons.md", "Of revisions", reason)[0])
	w.says(a.line(documented), one.says)
	if given.Command != "" && given.Command != documented {
		a.line(given.Command) // the command in the message
	}
	if one.solved != nil {
		one.solved(a)
	}
	for number := 3; number > 0; number-- {
		w.MustKubectl("delete", "cer", fmt.Sprintf("%s-%d", a.name, number), "--ignore-not-found", poll.TimeoutFlag)
	}
}

// why waits until the plugin returns a reason.
func (a *answers) why(reason string) advice.Advice {
	a.t.Helper()
	var found advice.Advice
	var last string
	err := poll.Until(a.t.Context(), func(context.Context) bool {
		out := plugin.User{Kubeconfig: a.Kubeconfig()}.Run(a.t, "kubectl penstock why "+a.name+" -o json")
		var all []advice.Advice
		last = out.String()
		if err := json.Unmarshal([]byte(out.Stdout), &all); err != nil {
			return false
		}
		for _, one := range all {
			if one.Reason == reason {
				found = one
				return true
			}
		}
		return false
	})
	if err != nil {
		a.t.Fatalf("why does not say %s: %v\n%s", reason, err, last)
	}
	return found
}

// documented runs the reference's command for a reason of a plan, with the name of the plan. It
// returns the output.
func (w sharedPlane) documented(heading, reason, plan string) string {
	w.t.Helper()
	out := w.types(0, strings.ReplaceAll(reference.Commands(w.t, "reasons.md", heading, reason)[0], "rebalance", plan))
	return out.Stdout + out.Stderr
}

// line runs a printed command and returns its output.
func (a *answers) line(line string) string {
	a.t.Helper()
	if strings.HasPrefix(line, "kubectl penstock ") {
		out := a.types(0, line)
		return out.Stdout + out.Stderr
	}
	return a.MustKubectl(reference.Words(line)[1:]...)
}
