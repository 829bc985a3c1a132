// Package image unpacks images into folders. It pulls an image once per digest, unpacks the needed
// part into a folder, and keeps the folder while the digest is in use.
//
// The content of an image is untrusted. The package checks digests and sizes. It limits downloads,
// decompression and writes. It reads and writes only within the folder of the image. The folder
// gets its final name only after all checks.
package image
