// Package widgets has a kind of another owner, and a user-defined profile for it.
package widgets

import (
	"fmt"
	"strings"
)

// Definition is the definition of the kind.
const Definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.own.example.com}
spec:
  group: own.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}
          status: {type: object, properties: {ready: {type: integer}}}
`

// One returns the small widget that the profile changes.
func One(namespace string) string {
	return fmt.Sprintf("{apiVersion: own.example.com/v1, kind: Widget, metadata: {name: one, namespace: %s}, spec: {size: 1, color: red}}", namespace)
}

// Profile returns the profile large-widgets: the widget of a namespace grows to options.size.
func Profile(namespace string) string {
	return strings.Replace(profile, "NAMESPACE", namespace, 1)
}

const profile = `
apiVersion: hco.kubevirt.io/v1alpha1
kind: ConfigurationProfileDefinition
metadata: {name: large-widgets}
spec:
  description: Widgets are large.
  requirements:
  - {name: widgets, definition: widgets.own.example.com, kind: Widget, access: Write, install: the widgets, fields: [{path: spec.size}]}
  options: {type: object, properties: {size: {type: integer, default: 3, minimum: 1, description: How large they are.}}}
  items:
  - name: grow
    target: {requirement: widgets, namespace: NAMESPACE, name: one}
    object: '{"spec": {"size": options.size}}'
    impact: 'live != null && live.?spec.?size.orValue(0) == options.size ? "None" : "Medium"'
    reason: '"it grows to %d".format([options.size])'
    waits:
    - {expression: live.status.ready == options.size, message: the widget grows, messageExpression: '"%d are ready".format([live.status.ready])'}
`
