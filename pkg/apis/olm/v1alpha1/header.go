package v1alpha1

// VersionHeader is the version of the Penstock process that answers. Answers of all groups have it,
// including errors and discovery. kube-apiserver passes it on.
const VersionHeader = "Penstock-Version"
