package screens

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"time"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Readiness lists the parts that an upgrade of the cluster breaks, if the caller may see them.
type Readiness struct {
	Asked  string                       `json:"asked"`
	Answer olmv1alpha1.UpgradeReadiness `json:"answer"`
}

const nextMinor = "next"

var versionAsked = regexp.MustCompile(`^[0-9]{1,3}\.[0-9]{1,3}$`)

// readiness returns the obstacles to an upgrade for one extension or all, and on request the steps
// of the upgrade. While Penstock has not fetched all packages, the page requests it again.
func (a *API) readiness(ctx context.Context, r *http.Request) (any, error) {
	asked := r.URL.Query()
	version := cmp.Or(asked.Get("version"), nextMinor)
	if version != nextMinor && !versionAsked.MatchString(version) {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Version", Message: fmt.Sprintf("%q is no version: want a minor of Kubernetes or OpenShift, such as 1.38 or 4.22", version)}
	}
	request := a.penstock.OlmV1alpha1().RESTClient().Get().Resource("upgradereadinesses").Name(version)
	if name := asked.Get("extension"); name != "" {
		if refusal := checkName(name); refusal != nil {
			return nil, refusal
		}
		request = request.Param("extension", name)
	}
	if asked.Get("plan") != "" {
		request = request.SubResource("plan")
	}
	out := Readiness{Asked: time.Now().UTC().Format(time.RFC3339)}
	if err := request.Do(ctx).Into(&out.Answer); err != nil {
		return nil, err
	}
	return out, nil
}
