package v1alpha1

// RequestedByAnnotation of an imported revision names the user who requested it in the original
// store. The server copies it from the archive. status.requestedBy is the user who imported the
// revision; the import needs the rights of that user.
const RequestedByAnnotation = "penstock.dev/requested-by"
