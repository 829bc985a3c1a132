package targetclient

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCounter(t *testing.T) {
	cases := map[string]struct {
		reason  string
		because Reason
		usual   Reason
		method  string
		query   string
		want    Request
	}{
		"discovery": {
			reason: "what nobody gave a reason for asks for kinds",
			usual:  Discovery, method: http.MethodGet, want: Request{"get", Discovery},
		},
		"repair": {
			reason: "the reason is in the context, the verb in the method",
			usual:  Discovery, because: Repair, method: http.MethodPatch, want: Request{"patch", Repair},
		},
		"watch": {
			reason: "a watch is a GET", usual: Watch, method: http.MethodGet, query: "watch=true", want: Request{"watch", Watch},
		},
		"list":      {reason: "and so is the list before it", usual: Watch, method: http.MethodGet, want: Request{"list", Watch}},
		"instances": {reason: "instances are listed", usual: Discovery, because: Guard, method: http.MethodGet, want: Request{"list", Guard}},
		"post":      {reason: "an event is created", usual: Event, method: http.MethodPost, want: Request{"create", Event}},
		"delete":    {reason: "as in RBAC", usual: Discovery, because: Delete, method: http.MethodDelete, want: Request{"delete", Delete}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			counter := &Counter{}
			ctx := t.Context()
			if tc.because != "" {
				ctx = Because(ctx, tc.because)
			}
			request, err := http.NewRequestWithContext(ctx, tc.method, "https://example.com/api/v1?"+tc.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			sent := 0
			transport := counter.WrapFor(tc.usual)(roundTripperFunc(func(*http.Request) (*http.Response, error) {
				sent++
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}))
			response, err := transport.RoundTrip(request)
			if err != nil || sent != 1 {
				t.Fatalf("it was sent %d times: %v", sent, err)
			}
			_ = response.Body.Close()
			if diff := cmp.Diff(map[Request]int64{tc.want: 1}, counter.Requests()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if counter.Total() != 1 || counter.ByMethod()[tc.method] != 1 {
				t.Errorf("in total %d, by method %v", counter.Total(), counter.ByMethod())
			}
		})
	}
}

// TestBecause: a context's reason does not change its parent's reason.
func TestBecause(t *testing.T) {
	if reason, ok := reasonOf(context.Background()); ok {
		t.Errorf("a bare context says %q", reason)
	}
	if reason, _ := reasonOf(Because(Because(t.Context(), Repair), Judge)); reason != Judge {
		t.Errorf("the innermost reason counts, got %q", reason)
	}
}
