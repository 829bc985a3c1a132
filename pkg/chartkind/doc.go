// Package chartkind has the kind ChartKind, which installs a chart for each custom resource of a
// kind: its types, its CustomResourceDefinition, and its checks. It is pure.
package chartkind
