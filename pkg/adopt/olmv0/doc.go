// Package olmv0 decodes the objects of OLM v0 that adoption reads. It also selects the fields of an
// operator's objects that belong to OLM. It is pure.
package olmv0
