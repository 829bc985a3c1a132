package v1alpha1

// VersionHeader is in the answers of all groups of Penstock, errors and discovery among
// them: the version of the program that answers. kube-apiserver passes it on.
const VersionHeader = "Penstock-Version"
