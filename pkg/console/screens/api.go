package screens

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
)

// Options are the dependencies of the API.
type Options struct {
	// Config is the configuration for requests to the cluster, as the user.
	Config *rest.Config
	// Cluster is the user's name for the cluster: the context of the kubeconfig.
	Cluster string
	// Version is the version of the console.
	Version string
	// ReadOnly refuses all writes.
	ReadOnly bool
	// Server records the version of the Penstock that answers; nil creates a new one.
	Server *client.ServerVersion
}

// API answers the requests of the screens, as one user.
type API struct {
	Options
	penstock versioned.Interface
	host     dynamic.Interface
}

// New returns the API of a user. It sends no request.
func New(options Options) (*API, error) {
	a := &API{Options: options}
	config := rest.CopyConfig(options.Config)
	if a.Server == nil {
		a.Server = &client.ServerVersion{}
	}
	a.Server.Listen(config)
	config.WarningHandler, config.WarningHandlerWithContext = nil, gatherer{}
	var err error
	if a.penstock, err = versioned.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	if a.host, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return a, nil
}

// Route is one path of the API.
type Route struct {
	// Method and Path have the form of http.ServeMux patterns.
	Method, Path string
	Handler      http.Handler
}

// Handler serves all routes and refuses other paths. It does not proxy other requests.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, route := range a.Routes() {
		mux.Handle(route.Method+" "+route.Path, route.Handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		Refuse(w, Refusal{Status: http.StatusNotFound, Reason: "NotFound", Message: "the console has no such path"})
	})
	return mux
}

const streams = "/api/watch/"

// IsStream reports whether a path is answered by a stream.
func IsStream(path string) bool { return strings.HasPrefix(path, streams) }

// Routes returns all routes of the API.
func (a *API) Routes() []Route {
	return []Route{
		{http.MethodGet, "/api/me", answer(a.me)},
		{http.MethodGet, "/api/rights", answer(a.rights)},
		{http.MethodGet, streams + "overview", stream(a.watchOverview)},
		{http.MethodGet, streams + "extensions/{name}", stream(a.watchExtension)},
		{http.MethodGet, streams + "plans/{name}", stream(a.watchPlan)},
		{http.MethodGet, streams + "rollouts/{name}", stream(a.watchRollout)},
		{http.MethodGet, streams + "logs/{namespace}/{name}", stream(a.watchLog)},
		{http.MethodGet, "/api/diffs/{name}", answer(a.diff)},
		{http.MethodGet, "/api/histories/{name}", answer(a.history)},
		{http.MethodGet, "/api/revisions/{name}/objects", answer(a.objects)},
		{http.MethodGet, "/api/revisions/{name}/pods", answer(a.pods)},
		{http.MethodGet, "/api/pods/{namespace}/{name}", answer(a.pod)},
		{http.MethodGet, "/api/extensions/{name}/events", answer(a.events)},
		{http.MethodGet, "/api/extensions/{name}/window", answer(a.upgradeWindow)},
		{http.MethodGet, "/api/timeline", answer(a.timeline)},
		{http.MethodGet, "/api/search", answer(a.search)},
		{http.MethodGet, "/api/readiness", answer(a.readiness)},
		{http.MethodGet, "/api/plans/{name}/diff", answer(a.planDiff)},
		{http.MethodGet, "/api/plans/{name}/history", answer(a.planHistory)},
		{http.MethodGet, "/api/plans/{name}/items/{item}", answer(a.target)},
		{http.MethodGet, "/api/rollouts/{name}/groups", answer(a.rolloutGroups)},
		{http.MethodGet, "/api/revisions/{name}/object", answer(a.object)},
		{http.MethodGet, "/api/revisions/{name}/owners", answer(a.owners)},
		{http.MethodGet, "/api/profiles", answer(a.profiles)},
		{http.MethodPost, "/api/profiles/{profile}/plan", a.write(a.makePlan)},
		{http.MethodGet, "/api/packages", answer(a.packages)},
		{http.MethodGet, "/api/packages/{name}", answer(a.onePackage)},
		{http.MethodGet, "/api/packages/{name}/graph", answer(a.graph)},
		{http.MethodPost, "/api/packages/{name}/install", a.write(a.install)},
		{http.MethodPost, "/api/extensions/{name}/version", a.write(a.setVersion)},
		{http.MethodPost, "/api/revisions/{name}/state", a.write(a.setState)},
		{http.MethodPost, "/api/revisions/{name}/rollback", a.write(a.rollback)},
		{http.MethodPost, "/api/plans/{name}/approve", a.write(a.approve)},
		{http.MethodPost, "/api/plans/{name}/compute", a.write(a.compute)},
		{http.MethodPost, "/api/plans/{name}/stop", a.write(a.stop)},
		{http.MethodPost, "/api/plans/{name}/undo", a.write(a.undo)},
		{http.MethodPost, "/api/rollouts/{name}/approve", a.decide("approve")},
		{http.MethodPost, "/api/rollouts/{name}/halt", a.decide("halt")},
		{http.MethodPost, "/api/rollouts/{name}/resume", a.decide("resume")},
		{http.MethodPost, "/api/rollouts/{name}/retry", a.decide("retry")},
		{http.MethodPost, "/api/rollouts/{name}/skip", a.decide("skip")},
	}
}

func answer(ask func(context.Context, *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("name"); name != "" {
			if err := checkName(name); err != nil {
				Refuse(w, *err)
				return
			}
		}
		said, err := ask(r.Context(), r)
		if err != nil {
			Refuse(w, refusalOf(err))
			return
		}
		sendJSON(w, http.StatusOK, said)
	})
}

func (a *API) write(ask func(context.Context, *http.Request) (any, error)) http.Handler {
	if a.ReadOnly {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			Refuse(w, Refusal{Status: http.StatusForbidden, Reason: ReasonReadOnly, Message: "this console was started with --read-only"})
		})
	}
	return answer(ask)
}

// checkName accepts a name, or two names with dots between them. It refuses other text before it
// becomes part of a path.
func checkName(name string) *Refusal {
	// ..b means b and the revision before it.
	for side := range strings.SplitSeq(strings.TrimPrefix(name, ".."), "..") {
		if len(validation.IsDNS1123Subdomain(side)) > 0 {
			return &Refusal{Status: http.StatusBadRequest, Reason: "Name", Message: fmt.Sprintf("%q is not a name", name)}
		}
	}
	return nil
}

// read decodes the body of a request. It refuses unknown fields, because their sender expects an
// effect.
func read[T any](r *http.Request) (T, error) {
	var into T
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&into); err != nil {
		return into, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: fmt.Sprintf("reading the request: %v", err)}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return into, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: "reading the request: there is more than one value"}
	}
	return into, nil
}
