package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// gateOff has Helm apply ClusterExtensions.
const gateOff = "--feature-gates=BoxcutterRuntime=false"

// gateSees prints which objects the team has, and their generations: a user who makes one anew, or
// changes what it says, changes a line of it.
const gateSees = "kubectl get deployments,replicasets,configmaps -n " + teamSpace +
	` -o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}'`

// gate has the package of the team go to Helm and come back, by a flag of the server.
func gate(ctx context.Context, d *demo) {
	before := d.quiet(ctx, gateSees)
	d.turnGate(ctx, "Unknown", gateOff)
	out := d.show(ctx, "kubectl get secrets -n penstock-system -l owner=operator-controller,name="+teamExtension+" -L status")
	if missing := missingFrom(out, "sh.helm.release.v1."+teamExtension+".v1", "deployed"); len(missing) > 0 {
		panic(stop{&failure{claim: "Helm has a release of " + teamExtension, want: strings.Join(missing, ", "), got: out}})
	}
	d.gateSame(ctx, before, "Helm has it, with a release that OLM v1's operator-controller reads")
	d.turnGate(ctx, "True")
	d.gateSame(ctx, before, "it is back")
	d.quiet(ctx, fmt.Sprintf(`kubectl wait clusterextension/%s --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=Held --timeout=%s`, teamExtension, patience))
	d.ok("the rollback of the act before still holds")
	out = d.show(ctx, "kubectl get revisionhistory "+teamExtension)
	d.claim(strings.Contains(out, "taken over from revision 1 of its Helm release"), "the trip is a revision, and nothing of the history is lost", "a row that says so", out)
}

// turnGate restarts Penstock with more flags, and returns when the package of the team has got
// where it belongs: when Available has a status. By Helm that is Unknown.
func (d *demo) turnGate(ctx context.Context, available string, more ...string) {
	must(d.server.stop())
	usual := d.server.args
	d.server.args = append(slices.Clone(usual), more...)
	d.startPenstock(ctx, more...)
	d.server.args = usual
	d.quiet(ctx, fmt.Sprintf(`kubectl wait clusterextension/%s --for=jsonpath='{.status.conditions[?(@.type=="Available")].status}'=%s --timeout=%s`, teamExtension, available, patience))
}

// gateSame checks that the objects of the team are those of before.
func (d *demo) gateSame(ctx context.Context, before, claim string) {
	after := d.quiet(ctx, gateSees)
	d.claim(after == before, fmt.Sprintf("%s: the same objects, uid and generation, no Pod was restarted", claim), before, after)
}

// withoutGate says that the flags of a server in an image are those of its manifest.
func withoutGate(d *demo) string {
	if d.Image != "" {
		return "the server of an image has the flags of its manifest"
	}
	return ""
}
