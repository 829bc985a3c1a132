package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certutil "k8s.io/client-go/util/cert"

	"github.com/penstock-project/penstock/pkg/sigstore"
)

// expect checks the state of a result and a part of Found. A failed result must have a next step.
func expect(t *testing.T, reason string, got Result, state State, found string) {
	t.Helper()
	if got.State != state || !strings.Contains(got.Found, found) {
		t.Errorf("%s: %s: %q, want %s: %q", reason, got.State, got.Found, state, found)
	}
	if got.State == Failed && got.Next == "" {
		t.Errorf("%s: it failed, and nobody is told what to do", reason)
	}
}

func TestAPIServices(t *testing.T) {
	resource := schema.GroupResource{Resource: "apiservices"}
	with := func(status, reason, message string) (a apiService) {
		a.Status.Conditions = append(a.Status.Conditions, struct{ Type, Status, Reason, Message string }{"Available", status, reason, message})
		return a
	}
	for reason, tc := range map[string]struct {
		found apiService
		err   error
		state State
		says  string
		next  string
	}{
		"there":         {with("True", "Passed", ""), nil, OK, "reaches Penstock", ""},
		"not installed": {apiService{}, apierrors.NewNotFound(resource, "x"), Failed, "not there", "--register"},
		"no rights":     {apiService{}, apierrors.NewForbidden(resource, "x", errors.New("no")), Unknown, "you cannot look", ""},
		"not reached":   {with("False", "MissingEndpoints", "no endpoints"), nil, Failed, "MissingEndpoints: no endpoints", "Pod of Penstock"},
		"not trusted":   {with("False", "FailedDiscoveryCheck", "x509: certificate signed by unknown authority"), nil, Failed, "unknown authority", "caBundle"},
		"just made":     {apiService{}, nil, Unknown, "not tried it yet", "ask again"},
	} {
		got := judgeAPIService(tc.found, tc.err)
		expect(t, reason, got, tc.state, tc.says)
		if !strings.Contains(got.Next, tc.next) {
			t.Errorf("%s: what to do is %q, want %q", reason, got.Next, tc.next)
		}
	}
}

// TestRootCause: if one cause explains all other findings, only this cause is reported.
func TestRootCause(t *testing.T) {
	gone := Result{"apiservice a", Failed, notThere, "install it"}
	silent := Result{"apiservice a", Failed, "MissingEndpoints", "start it"}
	fine := Result{"apiservice b", OK, "", ""}
	for reason, tc := range map[string]struct {
		check   string
		results []Result
		earlier []Result
		says    string
	}{
		"not installed":        {"apiservice", []Result{gone, gone}, nil, "not installed"},
		"no answer":            {"apiservice", []Result{silent, silent}, nil, "does not answer: apiservice a: MissingEndpoints"},
		"half of it":           {"apiservice", []Result{gone, fine}, nil, ""},
		"discovery":            {"discovery", []Result{silent, silent}, []Result{gone, fine}, "does not answer: apiservice a: it is not there"},
		"another check failed": {"store", []Result{silent}, nil, ""},
	} {
		got := rootCause(tc.check, tc.results, tc.earlier)
		if (got == nil) != (tc.says == "") {
			t.Errorf("%s: %v, want %q", reason, got, tc.says)
			continue
		}
		if got != nil {
			expect(t, reason, *got, Failed, tc.says)
		}
	}
}

func TestBundles(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "test"}, key)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := certutil.EncodeCertificates(authority)
	if err != nil {
		t.Fatal(err)
	}
	end := authority.NotAfter
	for reason, tc := range map[string]struct {
		bundle []byte
		now    time.Time
		state  State
		says   string
	}{
		"young":       {bundle, end.AddDate(-1, 0, 0), OK, "valid until " + end.UTC().Format(time.DateOnly)},
		"nearly over": {bundle, end.AddDate(0, 0, -3), Failed, "expires on"},
		"over":        {bundle, end.AddDate(0, 0, 1), Failed, "expired on"},
		"none":        {nil, end, Unknown, "names none"},
		"not PEM":     {[]byte("x"), end, Failed, "no certificate"},
		"not X.509":   {[]byte("-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"), end, Failed, "unreadable"},
	} {
		expect(t, reason, judgeBundle(tc.bundle, tc.now), tc.state, tc.says)
	}
}

func TestLease(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := func(holder string, ago time.Duration) (l coordinationv1.Lease) {
		renewed := metav1.NewMicroTime(now.Add(-ago))
		l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &holder, &renewed, new(int32(15))
		return l
	}
	for reason, tc := range map[string]struct {
		lease coordinationv1.Lease
		err   error
		state State
		says  string
	}{
		"held":       {lease("a", 5*time.Second), nil, OK, "a leads, and renewed its lease 5s ago"},
		"dead":       {lease("a", time.Hour), nil, Failed, "a led, and was last heard of 1h0m0s ago"},
		"just late":  {lease("a", 25*time.Second), nil, Failed, "last heard of 25s ago"},
		"given back": {lease("", time.Second), nil, Failed, "no replica leads"},
		"never":      {coordinationv1.Lease{}, apierrors.NewNotFound(schema.GroupResource{}, "x"), Failed, "ever led"},
		"no rights":  {coordinationv1.Lease{}, apierrors.NewForbidden(schema.GroupResource{}, "x", nil), Unknown, "you cannot look"},
	} {
		expect(t, reason, judgeLease(tc.lease, tc.err, now), tc.state, tc.says)
	}
}

func TestReadiness(t *testing.T) {
	for reason, tc := range map[string]struct {
		lines string
		err   error
		state State
		says  string
	}{
		"ready":       {"[+]ping ok\n[+]store-identity ok\nreadyz check passed\n", nil, OK, "2 checks pass"},
		"not ready":   {"[+]ping ok\n[-]store-identity failed: reason withheld\nreadyz check failed\n", errors.New("500"), Failed, "not ready: store-identity"},
		"not reached": {"", apierrors.NewServiceUnavailable("no endpoints"), Unknown, "no endpoints"},
		"no rights":   {"", apierrors.NewForbidden(schema.GroupResource{}, "x", nil), Unknown, "you cannot look"},
		"else":        {"<html>", nil, Unknown, "not one of a readiness check"},
	} {
		expect(t, reason, judgeReadiness(tc.lines, tc.err), tc.state, tc.says)
	}
}

func TestVersionsAndStores(t *testing.T) {
	expect(t, "the same", judgeVersion("v1", "v1"), OK, "Penstock v1")
	expect(t, "another", judgeVersion("v2", "v1"), OK, "Penstock v2; this program is v1")
	expect(t, "no answer", judgeVersion("", "v1"), Unknown, "did not answer")
	made, err := time.Parse(time.DateOnly, sigstore.RootDate)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "a root of this year", judgeRoot("v1", "v1", made.AddDate(0, 11, 0)), OK, "of "+sigstore.RootDate+", 33")
	expect(t, "an old root", judgeRoot("v1", "v1", made.AddDate(1, 1, 0)), Unknown, "may lack the authorities")
	expect(t, "the root of another version", judgeRoot("v2", "v1", made), Skipped, "another version")
	expect(t, "degraded", judgeRead(apierrors.NewServiceUnavailable("the store is another one")), Failed, "the store is another one")
	expect(t, "gone", judgeRead(apierrors.NewNotFound(schema.GroupResource{}, "")), Failed, "not served")
	expect(t, "broken", judgeRead(errors.New("500")), Failed, "500")
	expect(t, "read", judgeRead(nil), OK, "can be read")
}
