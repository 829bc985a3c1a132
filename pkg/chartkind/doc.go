// Package chartkind defines the kind ChartKind, which installs a chart for each custom resource of
// a kind: its types, CustomResourceDefinition and validation. It is pure.
package chartkind
