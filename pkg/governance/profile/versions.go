package profile

import "k8s.io/apimachinery/pkg/version"

// compareVersions orders v1 before v1beta1 before v1alpha1, and higher numbers
// first.
func compareVersions(a, b string) int { return -version.CompareKubeAwareVersionStrings(a, b) }
