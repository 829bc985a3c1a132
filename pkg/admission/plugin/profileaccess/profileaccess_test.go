package profileaccess_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/admission/plugin/profileaccess"
	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// rights are the cluster-wide rights of a user, as "verb resource.group". "down" simulates a cluster
// that does not answer.
type rights []string

func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	for _, one := range r {
		if one == "down" {
			return authorizer.DecisionNoOpinion, "", errors.New("down")
		}
		if one == a.GetVerb()+" "+a.GetResource()+"."+a.GetAPIGroup() && a.GetNamespace() == "" && a.GetName() == "" {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func definition(access hco.DefinitionAccess, items int) *hco.ConfigurationProfileDefinition {
	return &hco.ConfigurationProfileDefinition{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Spec: hco.ConfigurationProfileDefinitionSpec{
		Requirements: []hco.DefinitionRequirement{{Name: "widgets", Definition: "widgets.example.com", Access: access}}, Items: make([]hco.DefinitionItem, items),
	}}
}

// TestProfileAccess: a user who writes a definition needs every verb that it declares.
func TestProfileAccess(t *testing.T) {
	read := rights{"get widgets.example.com", "list widgets.example.com", "watch widgets.example.com"}
	write := append(read[:3:3], "create widgets.example.com", "patch widgets.example.com", "delete widgets.example.com")
	labelled := definition(hco.AccessWrite, 1)
	labelled.Labels = map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		object, old *hco.ConfigurationProfileDefinition
		subresource string
		has         rights
		refused     string
	}{
		"Schema":             {definition(hco.AccessSchema, 1), nil, "", nil, ""},
		"Read":               {definition(hco.AccessRead, 1), nil, "", read, ""},
		"Read, with nothing": {definition(hco.AccessRead, 1), nil, "", nil, "you cannot get widgets.example.com, list widgets.example.com, watch widgets.example.com"},
		"Write":              {definition(hco.AccessWrite, 1), nil, "", write, ""},
		"Write, with reads":  {definition(hco.AccessWrite, 1), nil, "", read, "you cannot create widgets.example.com, patch widgets.example.com, delete widgets.example.com"},
		"Write, but one":     {definition(hco.AccessWrite, 1), nil, "", write[:5], "you cannot delete widgets.example.com"},
		"More access":        {definition(hco.AccessWrite, 1), definition(hco.AccessRead, 1), "", read, "you cannot create"},
		"Other items":        {definition(hco.AccessWrite, 2), definition(hco.AccessWrite, 1), "", read, "you cannot create"},
		"Labels":             {labelled, definition(hco.AccessWrite, 1), "", nil, ""},
		"Status":             {definition(hco.AccessWrite, 1), definition(hco.AccessWrite, 1), "status", write, "nobody but Penstock"},
		"Unknown":            {definition(hco.AccessRead, 1), nil, "", rights{"down"}, "cannot be checked at the moment"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := profileaccess.New()
			plugin.SetAuthorizer(c.has)
			operation := admission.Update
			if c.old == nil {
				operation = admission.Create
			}
			attributes := admission.NewAttributesRecord(c.object, nil, v1alpha1.SchemeGroupVersion.WithKind("ConfigurationProfileDefinition"), "", "large",
				v1alpha1.SchemeGroupVersion.WithResource("configurationprofiledefinitions"), c.subresource, operation, nil, false, &user.DefaultInfo{Name: "alice"})
			if c.old != nil {
				attributes = admission.NewAttributesRecord(c.object, c.old, v1alpha1.SchemeGroupVersion.WithKind("ConfigurationProfileDefinition"), "", "large",
					v1alpha1.SchemeGroupVersion.WithResource("configurationprofiledefinitions"), c.subresource, operation, nil, false, &user.DefaultInfo{Name: "alice"})
			}
			err := plugin.Validate(t.Context(), attributes, nil)
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v, want %q", err, c.refused)
			}
		})
	}
	if err := profileaccess.New().ValidateInitialization(); err == nil {
		t.Error("a plugin without an authorizer is ready")
	}
}
