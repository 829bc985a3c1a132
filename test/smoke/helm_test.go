//go:build integration

package smoke_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	releases "github.com/penstock-project/penstock/pkg/source/helm"
)

// helm: Penstock takes over a Helm release as an extension, with its history and without creating
// an object. Then the release returns to Helm.
func helm(s scenario) {
	for version, status := range []string{releases.StatusSuperseded, releases.StatusDeployed} {
		s.helmed(version+1, status)
	}
	uid := s.Field("configmap/settings", ".metadata.uid")
	adopt := func(flags ...string) string {
		s.t.Helper()
		return s.types(0, strings.Join(append([]string{"adopt helm", s.name, "-n", s.name}, flags...), " "))
	}
	s.Says(adopt("--dry-run"), "helm-2     Active     deployed     web-1.2.0", "helm-1     Archived   superseded   web-1.1.0", "nothing was written")
	s.Absent("cer/helm-2")
	s.Says(adopt(), "helm/helm is extension helm: 1 object, helm-2 has succeeded")
	s.Is("configmap/settings", ".metadata.uid", uid)
	s.Becomes("secret/sh.helm.release.v1.helm.v2", `.metadata.annotations.penstock\.dev/superseded-by`, "helm")

	// Penstock repairs the object. A rollback to the older Helm revision works.
	s.Patch("configmap/settings", `{"data":{"version":"drifted"}}`)
	s.Becomes("configmap/settings", ".data.version", "2")
	s.Says(s.types(0, "history helm"), "1.1.0", "1.2.0", "Helm: Upgrade complete")
	s.Says(s.types(1, "diff helm-1..helm-2"), "1 changed")

	s.Says(adopt("--undo"), "helm/helm is Helm's again")
	s.Absent("cer/helm-2")
	s.Is("configmap/settings", ".metadata.uid", uid)
}

// helmed returns one revision of a release as Helm stores it, and its object.
func (s scenario) helmed(version int, status string) {
	s.t.Helper()
	manifest := func(marks string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n%sdata: {version: \"%d\"}\n", marks, version)
	}
	release := releases.Release{
		Name: s.name, Namespace: s.name, Version: version, ApplyMethod: "ssa", Manifest: "---\n" + manifest(""),
		Info: releases.Info{LastDeployed: time.Now(), Status: status, Description: "Upgrade complete"},
	}
	release.Chart.Metadata.Name, release.Chart.Metadata.Version = "web", fmt.Sprintf("1.%d.0", version)
	record, err := json.Marshal(release)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Create(fmt.Sprintf(`
apiVersion: v1
kind: Secret
type: %s
metadata:
  name: sh.helm.release.v1.%[2]s.v%[3]d
  labels: {owner: helm, name: %[2]s, status: %[4]s, version: "%[3]d"}
stringData: {%[5]s: %[6]s}
`, releases.SecretType, s.name, version, status, releases.DataKey, base64.StdEncoding.EncodeToString(record)))
	s.ApplyAs("helm", manifest(fmt.Sprintf("  labels: {%s: Helm}\n  annotations: {%s: %s, %s: %[3]s}\n",
		releases.ManagedByLabel, releases.NameAnnotation, s.name, releases.NamespaceAnnotation)))
}
