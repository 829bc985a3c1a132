package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// gateOff makes Helm apply ClusterExtensions.
const gateOff = "--feature-gates=BoxcutterRuntime=false"

// gateSees prints the team's objects with their generations. Its output changes if an object is
// replaced or its spec is changed.
const gateSees = "kubectl get deployments,replicasets,configmaps -n " + teamSpace +
	` -o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation}{"\n"}{end}'`

// gate hands the team's package over to Helm and back, by a flag of the server.
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
	d.claim(strings.Contains(out, "taken over from revision 1 of its Helm release"), "the switch is a revision, and the history is complete", "a row that says so", out)
}

// turnGate restarts Penstock with more flags, and waits until Available of the team's extension has
// this status, which shows who owns the objects. With Helm, it is Unknown.
func (d *demo) turnGate(ctx context.Context, available string, more ...string) {
	must(d.server.stop())
	usual := d.server.args
	d.server.args = append(slices.Clone(usual), more...)
	d.startPenstock(ctx, more...)
	d.server.args = usual
	d.quiet(ctx, fmt.Sprintf(`kubectl wait clusterextension/%s --for=jsonpath='{.status.conditions[?(@.type=="Available")].status}'=%s --timeout=%s`, teamExtension, available, patience))
}

// gateSame checks that the team's objects are unchanged.
func (d *demo) gateSame(ctx context.Context, before, claim string) {
	after := d.quiet(ctx, gateSees)
	d.claim(after == before, fmt.Sprintf("%s: the same objects, uid and generation, no Pod was restarted", claim), before, after)
}

// withoutGate returns the reason to skip the act with an image, whose flags are fixed in the
// manifest.
func withoutGate(d *demo) string {
	if d.Image != "" {
		return "the server of an image has the flags of its manifest"
	}
	return ""
}
