package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
	"github.com/penstock-project/penstock/test/framework/registry"
)

const (
	// teamSpace is the namespace of a team. teamPackage is the package that the team installs
	// there, teamExtension the name of the extension, and teamName the user.
	teamSpace     = "harbour"
	teamPackage   = "buoy"
	teamExtension = "light"
	teamName      = "harbour-team"
)

// teamRights are all rights of the team: the package's rights in its namespace, and rights to
// ClusterExtensions and their revisions in the cluster.
const teamRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: harbour-team}
rules:
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensions], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [get, list, watch, create, patch]}
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions/diff, clusterextensionrevisions/rollback, revisiondiffs, revisionhistories], verbs: [get, create]}
- {apiGroups: [catalog.penstock.dev], resources: [catalogpackages, catalogpackages/upgrades], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: harbour-team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: harbour-team}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: harbour-team}]
`

// teamInstall installs a package as a team that has only the rights the package needs. Without
// them, the error lists the missing rights.
func teamInstall(ctx context.Context, d *demo) {
	d.publishBuoys(ctx, "catalog-first")
	d.meetTeam(ctx)
	install := fmt.Sprintf("kubectl penstock --kubeconfig team install %s %s -n %s --channel '' --yes", teamPackage, teamExtension, teamSpace)
	out := d.asTeam(ctx, install)
	said := strings.Join(strings.Fields(out.Stderr), " ")
	if missing := missingFrom(said, "Denied", teamName+" cannot", "deployments.apps", "configmaps", "kind: Role metadata: name: install-light namespace: "+teamSpace); out.ExitCode != 1 || len(missing) > 0 {
		panic(stop{&failure{claim: install, want: "a denial that names the rights", got: fmt.Sprintf("exit status %d, without %s: %s", out.ExitCode, strings.Join(missing, ", "), said)}})
	}
	d.ok("nothing was installed; the missing rights are named, with the Role that grants them: Penstock lends nobody its own")
	grant := fmt.Sprintf("kubectl create role installer -n %s --verb=create,patch,delete --resource=configmaps,deployments.apps", teamSpace)
	d.show(ctx, grant+" &&\n"+fmt.Sprintf("kubectl create rolebinding installer -n %s --role=installer --user=%s", teamSpace, teamName))
	d.show(ctx, fmt.Sprintf("kubectl wait clusterextension/%s --for=condition=Ready --timeout=%s", teamExtension, patience))
	who := d.quiet(ctx, "kubectl get cer light-1 -o jsonpath='{.status.requestedBy.username}'")
	d.claim(who == teamName, "installed in the name of "+who+", with only the rights of that namespace", teamName, who)
}

// step is a command of the team, with its expected exit code and output.
type step struct {
	command string
	exit    int
	says    []string
	claim   string
}

// teamUpgrade shows several versions: one is proposed, reviewed and approved, the next is stuck and
// corrected, and a rollback is kept.
func teamUpgrade(ctx context.Context, d *demo) {
	d.publishBuoys(ctx, "catalog")
	d.quiet(ctx, fmt.Sprintf("kubectl wait --for=create cer/light-2 --timeout=%s", patience))
	const asTeam = "kubectl penstock --kubeconfig team "
	for _, next := range []step{
		{asTeam + "upgrade light --dry-run", 1, []string{"1.1.0 proposed, from channel stable", "light: green"}, "the catalog has a newer version: it waits, and its diff is the review"},
		{asTeam + "upgrade light --yes --stat", 0, nil, "approved by the digest of that diff, with the rights of who approves"},
		{asTeam + "upgrade light --version 1.2.0 --yes --timeout 2s", exitTimeout, []string{"1.2.0: Active"}, "1.2.0 does not get ready: status has the reason, and 1.1.0 serves"},
		{asTeam + "upgrade light --version 1.2.1 --yes", 0, nil, "a version that is stuck is corrected by asking for another one"},
		{asTeam + "rollback light --yes --stat --cause 'the light is too bright'", 0, nil, ""},
	} {
		d.team(ctx, next)
	}
	d.quiet(ctx, fmt.Sprintf(`kubectl wait clusterextension/light --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=Held --timeout=%s`, patience))
	d.show(ctx, `kubectl get clusterextension light -o jsonpath='{.status.conditions[?(@.type=="Ready")].message}{"\n"}'`)
	d.ok("the rollback holds: what was rolled back does not come again by itself")
}

// exitTimeout is the exit code of the plugin after a timeout.
const exitTimeout = 124

func (d *demo) team(ctx context.Context, next step) {
	out := d.asTeam(ctx, next.command)
	if missing := missingFrom(out.Stdout+out.Stderr, next.says...); out.ExitCode != next.exit || len(missing) > 0 {
		panic(stop{&failure{claim: next.command, want: fmt.Sprintf("exit status %d", next.exit), got: fmt.Sprintf("exit status %d, without %s: %s%s", out.ExitCode, strings.Join(missing, ", "), out.Stderr, out.Stdout)}})
	}
	if next.claim != "" {
		d.ok("%s", next.claim)
	}
}

// longestError limits an error in the transcript, in bytes.
const longestError = 400

// asTeam runs a command that may fail, and prints it with its output.
func (d *demo) asTeam(ctx context.Context, command string) result {
	d.command(d.shortened(command))
	out := get(d.shell.run(ctx, "cd "+quoted(d.dir)+" && "+command))
	for line := range strings.Lines(out.Stderr) {
		if strings.HasPrefix(line, "Error:") {
			d.output(d.shortened(text.Clip(line, longestError)))
		}
	}
	d.output(d.shortened(out.Stdout))
	return out
}

// quiet runs a command that must succeed, and returns its output.
func (d *demo) quiet(ctx context.Context, command string) string {
	out, err := d.shell.run(ctx, command)
	if err == nil && out.ExitCode != 0 {
		err = &failure{claim: command, want: "exit status 0", got: out.Stderr}
	}
	must(err)
	return out.Stdout
}

func (d *demo) meetTeam(ctx context.Context) {
	access := get(d.plane.User(teamName))
	content, err := os.ReadFile(access.Kubeconfig())
	if err != nil {
		panic(stop{fmt.Errorf("reading the kubeconfig of the team: %w", err)})
	}
	for name, written := range map[string][]byte{"team": content, "team.yaml": []byte(teamRights)} {
		if err := os.WriteFile(filepath.Join(d.dir, name), written, 0o600); err != nil {
			panic(stop{fmt.Errorf("writing %s: %w", name, err)})
		}
	}
	d.quiet(ctx, fmt.Sprintf("kubectl create namespace %s && kubectl apply -f %s", teamSpace, quoted(filepath.Join(d.dir, "team.yaml"))))
	d.note("%s may write ClusterExtensions, and nothing to its namespace %s yet", teamName, teamSpace)
}

// publishBuoys builds images of the bundles and of one of the catalogs, and adds the catalog to the
// cluster.
func (d *demo) publishBuoys(ctx context.Context, catalog string) {
	examples := filepath.Join(filepath.Dir(d.Plans), teamPackage)
	folders := map[string]string{"catalogs/buoys:" + catalog: catalog}
	for _, version := range []string{"v1.0.0", "v1.1.0", "v1.2.0", "v1.2.1"} {
		folders["buoy/bundle:"+version] = filepath.Join("bundles", version)
	}
	for name, folder := range folders {
		image := get(registry.FromFolder(filepath.Join(examples, folder)))
		must(registry.Push(ctx, d.registry.Dir, d.registry.Host+"/"+name, image))
	}
	manifest := fmt.Sprintf("apiVersion: olm.operatorframework.io/v1\nkind: ClusterCatalog\nmetadata: {name: buoys}\nspec: {source: {type: Image, image: {ref: %s/catalogs/buoys:%s}}}", d.registry.Host, catalog)
	d.quiet(ctx, "kubectl apply -f - <<'EOF'\n"+manifest+"\nEOF\nkubectl wait --for=condition=Serving clustercatalog/buoys")
}
