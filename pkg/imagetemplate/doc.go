// Package imagetemplate makes image references from templates: text with variables for values of
// the cluster, such as {kube_minor_version}. It is pure: callers pass the values in. The grammar
// and the words of conditions are those of OLM's design "automatic catalog switching annotations".
//
// Everything is bounded: MaxLength and MaxVariables bound a template, the allowed elements bound a
// path, and a value may contain only characters of one part of a reference. The value of a variable
// is never read as a template.
package imagetemplate
