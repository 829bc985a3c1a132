package image

// Limits bound what one image may cost. Sizes are in bytes.
type Limits struct {
	// Layers is the number of layers.
	Layers int
	// Config is the size of the image's configuration, where its labels are.
	Config int64
	// Download is the size of all layers, as they are in the registry.
	Download int64
	// Unpacked is the size of all layers, decompressed, with what is not kept of them.
	Unpacked int64
	// Entries is the number of entries of all layers, with those that are not kept.
	Entries int
	// Kept is the number of files, folders and links that are kept.
	Kept int
	// KeptBytes is the size of all files that are kept, and File that of one.
	KeptBytes, File int64
	// Path is the length of a path, and Depth the number of its elements.
	Path, Depth int
}

// DefaultLimits leave room for the largest catalogs that are published: an image of several
// hundred megabytes, most of which is an operating system and a cache that are not kept.
func DefaultLimits() Limits {
	return Limits{
		Layers: 128, Config: 4 << 20, Download: 1 << 30, Unpacked: 4 << 30, Entries: 300_000,
		Kept: 50_000, KeptBytes: 512 << 20, File: 128 << 20, Path: 1024, Depth: 32,
	}
}
