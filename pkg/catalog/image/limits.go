package image

// Limits limit the resources for one image. Sizes are in bytes.
type Limits struct {
	// Layers limits the number of layers.
	Layers int
	// Config limits the size of the image's configuration, which has its labels.
	Config int64
	// Download limits the total size of the layers as stored in the registry.
	Download int64
	// Unpacked limits the total decompressed size of the layers, including content that is not
	// kept.
	Unpacked int64
	// Entries limits the entries of all layers, including those that are not kept.
	Entries int
	// Kept limits the files, folders and links that are kept.
	Kept int
	// KeptBytes limits the total size of the kept files, and File the size of each.
	KeptBytes, File int64
	// Path limits the length of a path, and Depth its number of elements.
	Path, Depth int
}

// DefaultLimits are enough for the largest published catalogs: an image of several hundred
// megabytes, mostly an operating system and a cache, which are not kept.
func DefaultLimits() Limits {
	return Limits{
		Layers: 128, Config: 4 << 20, Download: 1 << 30, Unpacked: 4 << 30, Entries: 300_000,
		Kept: 50_000, KeptBytes: 512 << 20, File: 128 << 20, Path: 1024, Depth: 32,
	}
}
