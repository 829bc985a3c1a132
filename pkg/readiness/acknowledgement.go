package readiness

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// acknowledgement accepts a finding for one minor version.
type acknowledgement struct {
	minor string
	said  v1alpha1.UpgradeAcknowledgement
}

// Acknowledge reads the acknowledgements of a revision. Call it for newer revisions first; their
// acknowledgements take precedence.
func (e *Extension) Acknowledge(annotations map[string]string) {
	for key, value := range annotations {
		id, acknowledges := strings.CutPrefix(key, v1alpha1.AcknowledgeFindingPrefix)
		if !acknowledges {
			continue
		}
		at, by, stamped := strings.Cut(annotations[v1alpha1.AcknowledgedByPrefix+id], " ")
		when, err := time.Parse(time.RFC3339, at)
		minor, reason, wrong := olm.ParseAcknowledgement(value)
		if !stamped || err != nil || wrong != nil {
			continue
		}
		if e.acknowledged == nil {
			e.acknowledged = map[string][]acknowledgement{}
		}
		e.acknowledged[id] = append(e.acknowledged[id], acknowledgement{minor, v1alpha1.UpgradeAcknowledgement{By: by, At: metav1.NewTime(when), Reason: reason}})
	}
}

// acknowledge sets the ids of an extension's findings, and marks the findings that a user
// acknowledged for the target. A blocking finding cannot be acknowledged.
func (j *Judge) acknowledge(one *Extension, found []v1alpha1.UpgradeFinding) {
	for i := range found {
		finding := &found[i]
		if finding.Severity == v1alpha1.UpgradeBlocks {
			continue
		}
		sum := sha256.Sum256([]byte(strings.Join([]string{one.Name, string(finding.Severity), keyOf(finding)}, "|")))
		finding.ID = hex.EncodeToString(sum[:5])
		for _, given := range one.acknowledged[finding.ID] {
			if given.minor == j.answer.Target && finding.Acknowledged == nil {
				finding.Acknowledged = &given.said
			}
		}
	}
}
