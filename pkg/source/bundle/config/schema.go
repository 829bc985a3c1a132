package config

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deploymentConfig has the settings of Deployments: the fields of OLM's Subscription. It uses
// Kubernetes' types, so the schema has the fields of the Kubernetes version with which this program
// is built.
type deploymentConfig struct {
	NodeSelector map[string]string            `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration          `json:"tolerations,omitempty"`
	Resources    *corev1.ResourceRequirements `json:"resources,omitempty"`
	EnvFrom      []corev1.EnvFromSource       `json:"envFrom,omitempty"`
	Env          []corev1.EnvVar              `json:"env,omitempty"`
	Volumes      []corev1.Volume              `json:"volumes,omitempty"`
	VolumeMounts []corev1.VolumeMount         `json:"volumeMounts,omitempty"`
	Affinity     *corev1.Affinity             `json:"affinity,omitempty"`
	Annotations  map[string]string            `json:"annotations,omitempty"`
}

// namespacePattern matches DNS-1123 labels.
const (
	namespacePattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	maxNamespace     = 63
)

// schemaOf returns the JSON schema for one configuration of a bundle. It has only the types of
// Deployment settings in that configuration, because compiling all types takes longer than
// rendering a bundle.
func schemaOf(modes InstallModes, installNamespace string, configuration any) map[string]any {
	properties := map[string]any{"deploymentConfig": deploymentSchema(configuration)}
	schema := map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}
	if !modes.SingleNamespace && !modes.OwnNamespace {
		// The operator watches all namespaces, and no option can change that.
		return schema
	}
	watch := map[string]any{"type": "string", "pattern": namespacePattern, "maxLength": maxNamespace}
	switch {
	case !modes.SingleNamespace:
		watch["const"] = installNamespace
	case !modes.OwnNamespace:
		watch["not"] = map[string]any{"const": installNamespace}
	}
	if modes.AllNamespaces {
		watch = map[string]any{"if": map[string]any{"type": "null"}, "else": watch}
	} else {
		schema["required"] = []any{"watchNamespace"}
	}
	properties["watchNamespace"] = watch
	return schema
}

func deploymentSchema(configuration any) any {
	fields, _ := configuration.(map[string]any)
	value, is := fields["deploymentConfig"]
	if !is {
		return true
	}
	settings, _ := value.(map[string]any)
	of := reflect.TypeFor[deploymentConfig]()
	properties := map[string]any{}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		properties[name] = true
		if _, is := settings[name]; is {
			properties[name] = typeSchema(field.Type)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// typeSchema builds the schema of a Go type of the Kubernetes API from its JSON tags. A field
// without omitempty is required, and unknown fields are refused.
func typeSchema(of reflect.Type) map[string]any {
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		return map[string]any{"type": []any{"string", "number"}}
	case reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"type": []any{"string", "integer"}}
	case reflect.TypeFor[metav1.Time]():
		return map[string]any{"type": []any{"string", "null"}}
	case reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{"type": "object"}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return typeSchema(of.Elem())
	case reflect.Struct:
		return structSchema(of)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": typeSchema(of.Elem())}
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string"}
		}
		return map[string]any{"type": "array", "items": typeSchema(of.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{"type": "string"}
	}
}

func structSchema(of reflect.Type) map[string]any {
	properties := map[string]any{}
	var required []any
	addFields(of, properties, &required)
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// addFields adds the fields of a struct, including the fields of its inline structs.
func addFields(of reflect.Type, properties map[string]any, required *[]any) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			addFields(field.Type, properties, required)
			continue
		}
		properties[name] = typeSchema(field.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
}
