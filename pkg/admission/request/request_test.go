package request

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

func TestMarkInternal(t *testing.T) {
	self := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	cases := map[string]struct {
		reason string
		token  string
		header http.Header
		who    user.Info
		want   bool
		// sent is true when this process sent the request, under any user name.
		sent bool
	}{
		"Loopback": {
			reason: "the token proves it",
			token:  "secret", header: http.Header{"Authorization": {"Bearer secret"}}, who: self, want: true, sent: true,
		},
		"NameOnly": {
			reason: "the name comes from headers of the front proxy, or of impersonation, as well",
			token:  "secret", header: http.Header{"X-Remote-User": {user.APIServerUser}, "X-Remote-Group": {user.SystemPrivilegedGroup}}, who: self,
		},
		"OtherToken": {
			reason: "a token of the host",
			token:  "secret", header: http.Header{"Authorization": {"Bearer secret2"}}, who: self,
		},
		"TwoHeaders": {
			reason: "which one authenticates is not for us to guess",
			token:  "secret", header: http.Header{"Authorization": {"Bearer secret", "Bearer other"}}, who: self,
		},
		"Impersonation": {
			reason: "who acts for somebody is judged as that user",
			token:  "secret", header: http.Header{"Authorization": {"Bearer secret"}}, who: &user.DefaultInfo{Name: "alice"}, sent: true,
		},
		"Namesake": {
			reason: "the author of a ClusterExtension may have this name in the host, without any right",
			token:  "secret", who: &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.AllAuthenticated}}, sent: true,
			header: http.Header{"Authorization": {"Bearer secret"}, "Impersonate-User": {user.APIServerUser}, "Impersonate-Group": {user.AllAuthenticated}},
		},
		"Nobody": {
			reason: "a request that was not authenticated",
			token:  "secret", header: http.Header{"Authorization": {"Bearer secret"}}, sent: true,
		},
		"HostImpersonation": {
			reason: "who impersonates in the host has no token of ours",
			token:  "secret", header: http.Header{"Impersonate-User": {"alice"}}, who: &user.DefaultInfo{Name: "alice"},
		},
		"NoToken": {
			reason: "without a loopback client nothing is internal, not even an empty token",
			token:  "", header: http.Header{"Authorization": {"Bearer "}}, who: self,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, sent := false, false
			handler := MarkInternal(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got, sent = IsInternal(r.Context(), tc.who), IsSentByPenstock(r.Context())
			}), tc.token)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.Header = tc.header
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if got != tc.want {
				t.Errorf("%s: internal is %t, want %t", tc.reason, got, tc.want)
			}
			if sent != tc.sent {
				t.Errorf("%s: sent by this process is %t, want %t", tc.reason, sent, tc.sent)
			}
		})
	}
}

func TestContext(t *testing.T) {
	ctx := context.Background()
	if _, ok := ManifestsFrom(ctx); ok {
		t.Error("nobody said which manifests there are, and they are known")
	}
	if _, ok := ManifestsFrom(WithManifests(ctx, nil)); ok {
		t.Log("a revision without objects has manifests: none")
	} else {
		t.Error("that there are none is not known")
	}
	if LeavesOrphans(ctx) || !LeavesOrphans(WithOrphans(ctx)) {
		t.Error("the wish to leave orphans is not what was said")
	}
}
