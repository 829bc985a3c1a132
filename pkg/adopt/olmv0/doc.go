// Package olmv0 knows what version 0 of OLM has in a cluster: its objects as far as they are
// read, and which fields of the objects of an operator are OLM's. It is pure.
package olmv0
