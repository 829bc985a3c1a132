package chartkind

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Lacks returns the status fields that Penstock writes and the schema of a kind does not declare;
// empty if the schema declares all. Server-side apply refuses the whole write if one field is
// undeclared.
func Lacks(schema *apiextensionsv1.CustomResourceValidation) string {
	var status apiextensionsv1.JSONSchemaProps
	if schema != nil && schema.OpenAPIV3Schema != nil {
		status = schema.OpenAPIV3Schema.Properties["status"]
	}
	conditions, has := status.Properties["conditions"]
	if !has || conditions.XListType == nil || *conditions.XListType != "map" || !slices.Equal(conditions.XListMapKeys, []string{"type"}) {
		return "status.conditions with x-kubernetes-list-type: map and the key type: two managers write them"
	}
	var lacks []string
	lack := func(of apiextensionsv1.JSONSchemaProps, prefix, kind string, names ...string) {
		if of.XPreserveUnknownFields != nil && *of.XPreserveUnknownFields {
			return
		}
		for _, name := range names {
			if property, has := of.Properties[name]; !has || property.Type != kind && (property.XPreserveUnknownFields == nil || !*property.XPreserveUnknownFields) {
				lacks = append(lacks, prefix+name+" ("+kind+")")
			}
		}
	}
	lack(status, "status.", "integer", "observedGeneration")
	lack(status, "status.", "string", "reconciledVersion")
	if conditions.Items != nil && conditions.Items.Schema != nil {
		lack(*conditions.Items.Schema, "status.conditions[].", "string", "type", "status", "reason", "message", "lastTransitionTime")
	}
	return strings.Join(lacks, ", ")
}
