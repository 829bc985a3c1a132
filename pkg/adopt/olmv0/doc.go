// Package olmv0 knows the objects of OLM v0 in a cluster: the parts of them that adoption reads,
// and which fields of an operator's objects belong to OLM. It is pure.
package olmv0
