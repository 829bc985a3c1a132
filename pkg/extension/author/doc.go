// Package author knows who wrote what stands in an object of the host: the stamp that the
// server writes into an annotation when somebody changes what an author answers for, how it
// is signed, and when it counts. A Subject says what that is: of a ClusterExtension the spec and
// the annotations of ours, of a catalog the template of its image. It is pure.
//
// A stamp is made at admission, of a review that kube-apiserver sent with its own
// credentials. The signature is over what the stamp says and over the object: its kind, uid
// and generation, and a digest of what was written. At a creation nobody knows the uid yet:
// such a stamp is over the name, and counts for an object that was created within CreationSkew
// of it.
package author
