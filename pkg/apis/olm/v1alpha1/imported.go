package v1alpha1

// RequestedByAnnotation names, on a revision that was imported, the user who
// requested it in the store that it comes from. The server sets it, from the
// archive; status.requestedBy is the user who imported the revision, and it
// is their rights that were asked for.
const RequestedByAnnotation = "penstock.dev/requested-by"
