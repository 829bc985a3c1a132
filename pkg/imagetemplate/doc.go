// Package imagetemplate makes image references from templates: text with variables for values of
// the cluster, such as {kube_minor_version}. It is pure: callers pass the values in. The grammar
// and the texts of conditions are those of OLM's design "automatic catalog switching annotations".
//
// Everything is bounded. MaxLength and MaxVariables limit a template, and a path has only the
// allowed elements. A value contains only characters of one part of a reference, and is never
// parsed as a template.
package imagetemplate
