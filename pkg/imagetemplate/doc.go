// Package imagetemplate makes image references of templates: text with variables for which
// values of the cluster stand, {kube_minor_version} for instance. It is pure: where values
// come from, others know. The grammar and the words of conditions are those of OLM's design
// "automatic catalog switching annotations".
//
// Everything is bounded: a template by MaxLength and MaxVariables, a path by what it may have
// in it, a value by the characters of one part of a reference. The value of a variable is
// never read as a template.
package imagetemplate
