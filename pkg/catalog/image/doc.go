// Package image makes folders of images: an image is pulled once a digest, what is wanted of
// it is unpacked below a folder of ours, and read from there until nobody names the digest
// any more.
//
// An image can have any content, so nothing of it is trusted: digests
// and sizes are checked, what is downloaded, decompressed and written is bounded, nothing is
// written or read outside of the folder of the image, and nothing is there under its name
// before all of it was checked.
package image
