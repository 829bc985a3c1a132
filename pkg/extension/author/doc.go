// Package author knows the author of a part of an object of the host. When a user changes that
// part, the server writes a stamp into an annotation. The package signs stamps, and decides whether
// a stamp is valid. A Subject names the part: of a ClusterExtension the spec and our annotations,
// of a catalog the template of its image. The package is pure.
//
// A stamp is made at admission, from a review that kube-apiserver sent with its own credentials.
// The signature covers the stamp and the object: kind, uid, generation, and a digest of the written
// content. At a creation there is no uid yet. Such a stamp covers the name, and is valid for an
// object that was created within CreationSkew of it.
package author
