// Package imagetemplate has the images of CatalogSources and ClusterCatalogs follow the
// templates in their annotations: when the cluster is upgraded, when an object that a template
// names changes, and when its kind comes or goes.
//
// Objects are read in the name of penstock-templates, which may read nothing until somebody
// grants it, and for authors who may read them themselves. The values that were read are in the image, and
// nowhere else: no message, event, log or metric has it.
package imagetemplate
