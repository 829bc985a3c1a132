package redact

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func TestParseRule(t *testing.T) {
	for text, want := range map[string]Rule{
		"ConfigMap:.data.password":                       {Kind: "ConfigMap", Path: ".data.password"},
		"Database.example.com:.spec.users[*].password":   {Group: "example.com", Kind: "Database", Path: ".spec.users[*].password"},
		`Database.example.com:.spec.settings["a:b.c"].*`: {Group: "example.com", Kind: "Database", Path: `.spec.settings["a:b.c"].*`},
	} {
		got, err := ParseRule(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" || got.String() != text {
			t.Errorf("%s: -want, +got:\n%s", text, diff)
		}
	}
	for text, says := range map[string]string{
		"":                               "no colon",
		"ConfigMap":                      "no colon",
		":.data":                         "the kind is missing",
		"deployments.apps:.spec.a":       "not as a resource",
		"ConfigMap:":                     "is empty",
		"ConfigMap:data.password":        "want .field",
		"ConfigMap:.":                    "no identifier",
		"ConfigMap:.a..b":                "no identifier",
		"ConfigMap:.a[0]":                "want [*] or a key in quotes",
		"ConfigMap:.a[]":                 "want [*] or a key in quotes",
		"ConfigMap:.a[":                  "want [*] or a key in quotes",
		`ConfigMap:.a["b`:                "want [*] or a key in quotes",
		`ConfigMap:.a["b"`:               "a ] is missing",
		"ConfigMap:.a b":                 "no identifier",
		"ConfigMap:[*]":                  "an object is no list",
		"Data base.example.com:.spec.ab": "no kind",
	} {
		_, err := ParseRule(text)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), Grammar) {
			t.Errorf("%q: the error does not say %q and the grammar: %v", text, says, err)
		}
	}
	if _, err := New(Rule{Path: ".a"}); err == nil {
		t.Error("a rule without a kind was accepted")
	}
}

func example(t *testing.T, paths ...string) (*Redactor, schema.GroupKind) {
	t.Helper()
	var rules []Rule
	for _, path := range paths {
		rules = append(rules, Rule{Group: "example.com", Kind: "X", Path: path})
	}
	r, err := New(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return r, schema.GroupKind{Group: "example.com", Kind: "X"}
}

func TestObject(t *testing.T) {
	r, kind := example(t, ".spec.users[*].password", ".spec.any.*", ".spec.text")
	object := map[string]any{"spec": map[string]any{
		"users": []any{map[string]any{"name": "a", "password": "p"}, "odd"},
		"any":   map[string]any{"x": int64(1), "y": nil},
		"text":  map[string]any{"deep": "p"},
		"other": "o",
	}}
	want := map[string]any{"spec": map[string]any{
		"users": []any{map[string]any{"name": "a", "password": Hidden}, Hidden},
		"any":   map[string]any{"x": Hidden, "y": Hidden},
		"text":  Hidden,
		"other": "o",
	}}
	if diff := cmp.Diff(want, r.Object(kind, object)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if object["spec"].(map[string]any)["users"].([]any)[0].(map[string]any)["password"] != "p" {
		t.Error("the original was changed")
	}
	if diff := cmp.Diff([][]string{{"spec", "users"}, {"spec", "any"}, {"spec", "text"}}, r.Fields(kind)); diff != "" {
		t.Errorf("fields: -want, +got:\n%s", diff)
	}
	var none *Redactor
	if got := none.Object(schema.GroupKind{Kind: "Secret"}, map[string]any{"data": map[string]any{"k": "p"}}); !cmp.Equal(got, map[string]any{"data": map[string]any{"k": Hidden}}) {
		t.Errorf("Secrets are hidden without rules: %v", got)
	}
}

func TestMask(t *testing.T) {
	const long = "correct-horse-battery-staple"
	cases := map[string]struct {
		reason, value, text, want string
	}{
		"Whole":        {"as it is", "hunter2", `got "hunter2", want more`, `got "***", want more`},
		"Twice":        {"everywhere", "hunter2", "hunter2 and hunter2", "*** and ***"},
		"InAWord":      {"also as a part of something", "hunter2", "xhunter2x", "x***x"},
		"Short":        {"a few characters only by themselves", "no", `no: "no", but not noon`, `***: "***", but not noon`},
		"Quoted":       {"as Go quotes it", "a\"b\nc", `got "a\"b\nc"`, `got "***"`},
		"Base64":       {"as a Secret has it", "hunter2", "got " + base64.StdEncoding.EncodeToString([]byte("hunter2")), "got ***"},
		"Decoded":      {"as it is, when the field has it encoded", base64.StdEncoding.EncodeToString([]byte("hunter2")), "got hunter2", "got ***"},
		"InAURL":       {"escaped", "p@ss w/rd", "https://x/?p=" + url.QueryEscape("p@ss w/rd"), "https://x/?p=***"},
		"CutShort":     {"a piece of it", long, `got "correct-horse-…`, `got "***…`},
		"Middle":       {"from within", long, "it has horse-batt in it", "it has *** in it"},
		"Word":         {"a word of a file", "password: hunter2\n", "bad token hunter2 in line 1", "bad token *** in line 1"},
		"JSON":         {"a value in a file", `{"user":"admin","password":"hunter2"}`, "hunter2 is too short", "*** is too short"},
		"Folded":       {"with its lines joined", "ab\ncd ef", "got ab cd ef here", "got *** here"},
		"Number":       {"", "4711", "is 4711, not 47110", "is ***, not 47110"},
		"NotThere":     {"other text stays", "hunter2", "field is required", "field is required"},
		"NotASentence": {"text that has little in common stays", "a bc def", "the field a is required; bcd", "the field a is required; bcd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, kind := example(t, ".spec.secret")
			values := r.Values(kind, map[string]any{"spec": map[string]any{"secret": tc.value, "shown": "field required"}})
			if diff := cmp.Diff(tc.want, values.Mask(tc.text)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMaskCuts: a text that is cut contains no part of a value.
func TestMaskCuts(t *testing.T) {
	r, kind := example(t, ".spec.secret")
	values := r.Values(kind, map[string]any{"spec": map[string]any{"secret": "hunter2"}})
	for before := range 20 {
		text := strings.Repeat("x", textBytes-20) + " " + strings.Repeat("y", before) + " hunter2 hunter2 hunter2 hunter2"
		if got := values.Mask(text); strings.Contains(got, "hun") || len(got) > textBytes+20 {
			t.Errorf("%d: %d bytes, ending in %q", before, len(got), got[len(got)-30:])
		}
	}
}

func TestValuesOfEmbeddedSecrets(t *testing.T) {
	var r *Redactor
	values := r.Values(schema.GroupKind{Kind: "Template"}, map[string]any{"objects": []any{
		map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"k": "hunter2"}},
	}})
	if got := values.Mask("got hunter2"); got != "got ***" {
		t.Errorf("got %q", got)
	}
}

// TestError: no error contains a hidden value, whatever an API server or a webhook answers.
func TestError(t *testing.T) {
	const value, before = "hunter2", "tiger11"
	x, secrets := schema.GroupResource{Group: "example.com", Resource: "xs"}, schema.GroupResource{Resource: "secrets"}
	secret := manifest.ID{Kind: "Secret", Namespace: "a", Name: "x"}
	listed := manifest.ID{Group: "example.com", Kind: "X", Namespace: "a", Name: "x"}
	webhook := func(field string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: 403, Reason: metav1.StatusReason("No" + value), Status: value, Message: "admission webhook denied the request: " + value,
			Details: &metav1.StatusDetails{Name: value, Causes: []metav1.StatusCause{{Type: metav1.CauseType(value), Field: field, Message: value}}},
		}}
	}
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "x", field.ErrorList{
			field.Invalid(path, value, "is too short"), field.Required(field.NewPath("spec", "other"), "it must be there"),
		})
	}
	conflict := apierrors.NewApplyConflict([]metav1.StatusCause{{
		Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.secret", Message: `conflict with "kubectl-edit" using v1`,
	}}, "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .spec.secret")
	object := func(secret any) map[string]any {
		return map[string]any{"spec": map[string]any{"secret": secret}, "stringData": map[string]any{"p": secret}}
	}
	known := []map[string]any{object(value), object(before)}
	cases := map[string]struct {
		reason string
		id     manifest.ID
		err    error
		known  []map[string]any
		says   []string
		not    []string
	}{
		"SecretInvalid":       {"the field is named", secret, invalid(field.NewPath("data").Key("p")), nil, []string{"Invalid", "data[p]", "FieldValueInvalid"}, nil},
		"SecretPolicy":        {"of a message nothing", secret, apierrors.NewForbidden(secrets, "x", errors.New("the password "+value+" is weak")), nil, []string{"Forbidden"}, []string{"password"}},
		"SecretWebhook":       {"a webhook writes what it likes into all of it", secret, webhook(value), nil, []string{"Unknown"}, nil},
		"SecretDecoding":      {"", secret, apierrors.NewBadRequest(`json: cannot unmarshal "` + value + `"`), nil, []string{"BadRequest"}, nil},
		"SecretOurs":          {"what has no status may quote anything", secret, fmt.Errorf("decoding %s: illegal base64", value), nil, []string{"not repeated"}, nil},
		"SecretUnreachable":   {"who could not be reached, and why", secret, &url.Error{Op: "Patch", URL: "https://x", Err: errors.New("connection refused")}, nil, []string{"connection refused"}, nil},
		"Policy":              {"the rest of the message stays", listed, apierrors.NewForbidden(x, "x", errors.New("policy weak denied: the password "+value+" was "+before)), known, []string{"policy weak denied: the password *** was ***"}, nil},
		"PolicyOnUnknown":     {"nothing is known: of a message nothing", listed, apierrors.NewForbidden(x, "x", errors.New("the password "+value+" is weak")), nil, []string{"Forbidden"}, []string{"password"}},
		"Webhook":             {"in all of it", listed, webhook("spec.other"), known, []string{"admission webhook denied the request: ***"}, nil},
		"InvalidHidden":       {"a complaint about a hidden field has its value in a form of the server's", listed, invalid(field.NewPath("spec", "secret")), known, []string{"Invalid", "spec.secret: FieldValueInvalid", "spec.other: FieldValueRequired"}, []string{"too short"}},
		"InvalidAbove":        {"so has one about an object with it", listed, invalid(field.NewPath("spec")), known, []string{"spec: FieldValueInvalid"}, []string{"too short"}},
		"InvalidBelow":        {"or something in it", listed, invalid(field.NewPath("spec", "secret").Index(1).Child("a")), known, []string{"spec.secret[1].a: FieldValueInvalid"}, []string{"too short"}},
		"InvalidList":         {"an index is no obstacle", listed, invalid(field.NewPath("spec", "list").Index(3).Child("secret")), known, []string{"spec.list[3].secret: FieldValueInvalid"}, []string{"too short"}},
		"InvalidElsewhere":    {"a complaint about another field is repeated", listed, invalid(field.NewPath("spec", "list").Index(3).Child("shown")), known, []string{"is too short", "it must be there"}, nil},
		"Conflict":            {"who has the field is no value", listed, conflict, known, []string{"Conflict", ".spec.secret"}, nil},
		"WrappedAndRedacted":  {"once is enough", secret, fmt.Errorf("applying: %w", &Error{apierrors.NewBadRequest("it is bad")}), nil, []string{"applying: it is bad"}, nil},
		"OtherKindsHaveTheir": {"a kind that is only called so", manifest.ID{Group: "other.example.com", Kind: "Secret"}, apierrors.NewBadRequest("bad value"), nil, []string{"bad value"}, nil},
	}
	r, _ := example(t, ".spec.secret", ".spec.list[*].secret")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := r.Error(tc.id, tc.err, tc.known...)
			told := got.Error()
			if answer := apierrors.APIStatus(nil); errors.As(got, &answer) {
				told += fmt.Sprintf("%+v", answer.Status())
			}
			for _, not := range append(tc.not, value, before) {
				if strings.Contains(told, not) {
					t.Errorf("%s: it says %q: %s", tc.reason, not, told)
				}
			}
			for _, says := range tc.says {
				if !strings.Contains(got.Error(), says) {
					t.Errorf("%s: it does not say %q: %s", tc.reason, says, got)
				}
			}
			if apierrors.IsInvalid(got) != apierrors.IsInvalid(tc.err) || apierrors.IsConflict(got) != apierrors.IsConflict(tc.err) || apierrors.IsForbidden(got) != apierrors.IsForbidden(tc.err) {
				t.Error("what kind of answer it is was lost")
			}
		})
	}
	if r.Error(secret, nil) != nil {
		t.Error("an error was made of none")
	}
}

// TestQuotes: quotes of a live object are removed from a message; fields, the object's name and the
// writer's own values stay.
func TestQuotes(t *testing.T) {
	live := map[string]any{
		"apiVersion": "v1", "kind": "Knob", "metadata": map[string]any{"name": "cluster", "labels": map[string]any{"team": "storage-team"}, "uid": "u"},
		"spec": map[string]any{"mode": "Confidential", "limit": int64(1234), "wanted": "Automatic", "on": true, "list": []any{map[string]any{"token": "s3cr3t-token"}}},
	}
	ours := map[string]any{"spec": map[string]any{"wanted": "Automatic"}}
	const text = `Knob "cluster" is invalid: spec.mode: Unsupported value: "Confidential": true is wrong with limit 1234, storage-team's s3cr3t-token, and "Automatic"`
	const want = `Knob "cluster" is invalid: spec.mode: Unsupported value: "***": true is wrong with limit ***, ***'s ***, and "Automatic"`
	if got := Quotes(text, live, ours); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
