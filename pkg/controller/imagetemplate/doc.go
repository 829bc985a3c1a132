// Package imagetemplate updates the images of CatalogSources and ClusterCatalogs by the templates
// in their annotations. It does so when the version of the cluster changes, when an object that a
// template names changes, and when its kind is added or removed.
//
// It reads objects as penstock-templates, which has no rights until an administrator grants some,
// and only for authors who may read the objects themselves. Values appear only in the image, and
// never in a message, event, log or metric.
package imagetemplate
