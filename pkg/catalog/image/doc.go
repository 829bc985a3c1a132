// Package image makes folders from images. It pulls an image once for each digest, unpacks the
// needed part into a folder of ours, and keeps the folder while the digest is in use.
//
// The content of an image is not trusted. The package checks digests and sizes; bounds downloads,
// decompression and writes; and reads and writes only within the folder of the image. The folder
// gets its name only after all checks.
package image
