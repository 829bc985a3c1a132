package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// namesExtension is a made-up operator for this act.
	namesExtension = "hashed"
	// namedRoles is the number of its objects whose names differ in each version.
	namedRoles = 12
)

// names upgrades an operator whose roles have other names in each version, then upgrades it to a
// version that lacks the roles by mistake, and deletes it.
func names(ctx context.Context, d *demo) {
	dir := filepath.Join(d.dir, namesExtension)
	for version, hash := range map[string]string{"1.0.0": "a1", "2.0.0": "b2", "3.0.0": ""} {
		must(writeVersion(filepath.Join(dir, version), hash))
	}
	d.refusedAtTheDoor(ctx, filepath.Join(dir, "twice.yaml"))
	for number, version := range []string{"1.0.0", "2.0.0"} {
		d.installNamed(ctx, dir, version, number+1)
	}
	d.untilArchived(ctx, namesExtension+"-1")
	first := get(d.cluster.revision(ctx, namesExtension+"-1"))
	d.claim(is(first, v1alpha1.ConditionReady, "True"), fmt.Sprintf("%d roles of 1.0.0 were replaced, and nobody was asked", namedRoles),
		"Ready=True", conditions(first))
	d.emptied(ctx, dir)
	out := d.show(ctx, fmt.Sprintf("kubectl delete cer %s-2 --dry-run=server 2>&1 | head -n 4", namesExtension))
	missing := missingFrom(out, fmt.Sprintf("Warning: would delete %s: %d ClusterRole", text.Count(namedRoles, "object"), namedRoles), "Warning: would delete ClusterRole.rbac.authorization.k8s.io hashed-b2-01")
	d.claim(len(missing) == 0, "a dry-run of a deletion lists the objects that it would delete", "how many objects of which kinds, and their names", "without "+strings.Join(missing, ", "))
	d.show(ctx, fmt.Sprintf("kubectl delete cer -l penstock.dev/chain=%s", namesExtension))
}

func (d *demo) installNamed(ctx context.Context, dir, version string, number int) {
	d.show(ctx, fmt.Sprintf("penstock render %s --extension %s --revision %d |\nkubectl apply --server-side -f -", quoted(filepath.Join(dir, version)), namesExtension, number))
	name := fmt.Sprintf("%s-%d", namesExtension, number)
	d.follow(ctx, name, name+" is rolled out", newProgress(time.Now(), nil), rolledOut)
}

// emptied installs a version without the roles. Penstock deletes none of them.
func (d *demo) emptied(ctx context.Context, dir string) {
	d.installNamed(ctx, dir, "3.0.0", 3)
	name, asked := namesExtension+"-2", &v1alpha1.ClusterExtensionRevision{}
	err := d.cluster.followRevision(ctx, name, func(revision *v1alpha1.ClusterExtensionRevision) bool {
		asked = revision
		return is(revision, v1alpha1.ConditionStalled, "True")
	})
	if err != nil {
		panic(stop{&failure{claim: name + " asks before it loses its roles", want: "that within " + patience.String(), got: fmt.Sprintf("%v; %s", err, conditions(asked))}})
	}
	d.show(ctx, fmt.Sprintf("kubectl get cer %s -o jsonpath='{.status.conditions[?(@.type==\"Stalled\")].message}{\"\\n\"}'", name))
	found := get(d.cluster.read(ctx, refs(asked)))
	d.claim(len(found) == len(refs(asked)), "3.0.0 lacks the roles by mistake: all of them still exist, and the message has the command that deletes them",
		text.Count(len(refs(asked)), "object"), text.Count(len(found), "object"))
}

// refusedAtTheDoor creates a revision that server-side apply would refuse.
func (d *demo) refusedAtTheDoor(ctx context.Context, path string) {
	twice := fmt.Sprintf(twiceTemplate, namesExtension+"-1")
	if err := os.WriteFile(path, []byte(twice), 0o600); err != nil {
		panic(stop{fmt.Errorf("writing a revision: %w", err)})
	}
	out := d.show(ctx, fmt.Sprintf("! kubectl create -f %s 2>&1", quoted(path)))
	missing := missingFrom(out, "env", "LEVEL", "items 0 and 1")
	d.claim(len(missing) == 0, "a duplicate environment variable is refused before any write, with its place",
		"the field, the name and both places", "without "+strings.Join(missing, ", "))
}

// writeVersion writes the manifests of a version: a ConfigMap, and roles with a hash in their
// names. With an empty hash there are no roles.
func writeVersion(dir, hash string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making a folder for manifests: %w", err)
	}
	manifests := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hashed, namespace: default}\n"
	for i := 1; i <= namedRoles && hash != ""; i++ {
		manifests += fmt.Sprintf("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: hashed-%s-%02d}\n"+
			"rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]\n", hash, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(manifests), 0o600); err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}

// twiceTemplate is a revision with a duplicate environment variable.
const twiceTemplate = `apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: %s}
spec:
  revision: 1
  phases:
  - name: deploy
    objects:
    - object:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: twice, namespace: default}
        spec:
          selector: {matchLabels: {app: twice}}
          template:
            metadata: {labels: {app: twice}}
            spec:
              containers:
              - name: twice
                image: example.com/twice:v1
                env: [{name: LEVEL, value: info}, {name: LEVEL, value: debug}]
`
