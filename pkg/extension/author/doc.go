// Package author records the author of a part of an object in the host. When a user changes that
// part, the server writes a stamp into an annotation. The package signs stamps, and decides whether
// a stamp is valid. A Subject defines the part. For a ClusterExtension it is the spec and
// Penstock's annotations, for a catalog the template of its image. The package is pure.
//
// The server stamps at admission, from a review that kube-apiserver sent with its own credentials.
// The signature covers the stamp and the object: kind, uid, generation, and a digest of the written
// content. A created object has no uid at admission. Its stamp covers the name, and is valid for an
// object that was created within CreationSkew of it.
package author
