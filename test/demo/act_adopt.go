package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// buoy is a made-up Helm release for this act, and the name of its namespace.
const buoy = "buoy"

// adoptHelm adopts a Helm release as an extension, shows its history, and rolls it back.
func adoptHelm(ctx context.Context, d *demo) {
	file := filepath.Join(d.dir, buoy+".yaml")
	must(os.WriteFile(file, []byte(leftByHelm()), 0o600))
	d.note("%s has what `helm install` and `helm upgrade` leave in a cluster", filepath.Base(file))
	d.show(ctx, "kubectl apply --server-side --field-manager=helm -f "+quoted(file))
	id := manifest.ID{Group: "apps", Kind: "Deployment", Namespace: buoy, Name: buoy}
	if err := d.cluster.followDeployment(ctx, id, func(o *appsv1.Deployment) bool { return o.Status.AvailableReplicas > 0 }); err != nil {
		panic(stop{&failure{claim: "what Helm installed is available", want: "that within " + patience.String(), got: err.Error()}})
	}
	before := get(d.cluster.deployment(ctx, id))
	d.show(ctx, "penstock adopt helm "+buoy+" -n "+buoy+" --dry-run")
	d.show(ctx, "penstock adopt helm "+buoy+" -n "+buoy)
	after := get(d.cluster.deployment(ctx, id))
	same := after.UID == before.UID && after.Generation <= before.Generation+1 && image(after) == image(before)
	d.claim(same, "the same Deployment and the same Pods: nothing was replaced", fmt.Sprintf("uid %s, image %s", before.UID, image(before)),
		fmt.Sprintf("uid %s, image %s, generation %d", after.UID, image(after), after.Generation))
	d.show(ctx, "kubectl penstock history "+buoy)
	began := time.Now()
	d.show(ctx, "kubectl penstock rollback "+buoy+" --to "+buoy+"-1 --yes")
	d.follow(ctx, buoy+"-3", buoy+"-3 is rolled out", newProgress(began, nil), rolledOut)
	after = get(d.cluster.deployment(ctx, id))
	d.claim(image(after) == buoyImage(1), "the Deployment has the image of the first release of Helm", buoyImage(1), image(after))
}

func buoyImage(version int) string { return fmt.Sprintf("example.com/buoy:v%d", version) }

// buoyManifest returns the manifest of a revision, with additional metadata in its objects.
func buoyManifest(version int, metadata string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: buoy, namespace: buoy%[2]s}
data: {lamp: "%[1]d"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: buoy, namespace: buoy%[2]s}
spec:
  selector: {matchLabels: {app: buoy}}
  template:
    metadata: {labels: {app: buoy}}
    spec: {containers: [{name: buoy, image: "%[3]s"}]}
`, version, metadata, buoyImage(version))
}

// leftByHelm returns a namespace with two revisions of a release as Helm stores them, and the
// objects of the second revision.
func leftByHelm() string {
	var out strings.Builder
	out.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: buoy}\n---\n")
	for i, status := range []string{"superseded", "deployed"} {
		fmt.Fprintf(&out, `apiVersion: v1
kind: Secret
metadata: {name: sh.helm.release.v1.buoy.v%[1]d, namespace: buoy, labels: {name: buoy, owner: helm, status: %[2]s, version: "%[1]d"}}
type: helm.sh/release.v1
stringData: {release: %[3]s}
---
`, i+1, status, packedRelease(i+1, status))
	}
	out.WriteString(buoyManifest(2, `, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: buoy, meta.helm.sh/release-namespace: buoy}`))
	return out.String()
}

// packedRelease encodes a revision as Helm does: JSON, compressed, in base64.
func packedRelease(version int, status string) string {
	text, err := json.Marshal(map[string]any{
		"name": buoy, "namespace": buoy, "version": version, "apply_method": "ssa", "manifest": buoyManifest(version, ""),
		"info":  map[string]any{"status": status, "description": "Upgrade complete", "last_deployed": time.Now().Add(-time.Hour).Format(time.RFC3339)},
		"chart": map[string]any{"metadata": map[string]any{"name": buoy, "version": fmt.Sprintf("1.%d.0", version-1)}},
	})
	if err != nil {
		panic(err) // impossible for strings and numbers
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		panic(err) // impossible for a buffer
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}
