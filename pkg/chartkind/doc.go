// Package chartkind is the kind by which people say that custom resources are installed with
// a chart: its types, its CustomResourceDefinition, and what is allowed in it. It is pure.
package chartkind
