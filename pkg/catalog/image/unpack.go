package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
)

// Whiteouts are entries of a layer that remove content of lower layers
// (https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts).
const (
	whiteout = ".wh."
	reserved = ".wh..wh."
	opaque   = ".wh..wh..opq"
)

// unpacker writes layers into a folder. It only writes through an os.Root, which never follows a
// link out of the folder.
type unpacker struct {
	root   *os.Root
	limits Limits
	// keep are the folders of the image to keep; "." keeps all.
	keep []string
	used used
}

// used counts the used part of the limits.
type used struct {
	entries, kept int
	bytes         int64
	folders       map[string]bool
}

// attempt is one reading of one layer. After an outage, a layer is read again from its beginning.
// Content of an earlier attempt then counts as content of a lower layer.
type attempt struct {
	*unpacker
	added map[string]bool
}

// layer writes one layer. If it fails, it restores the counters.
func (u *unpacker) layer(stream io.Reader) error {
	before := u.used
	before.folders = maps.Clone(u.used.folders)
	a := attempt{unpacker: u, added: map[string]bool{}}
	for r := tar.NewReader(stream); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			err = &Refused{Reason: "it is no tar archive that can be read", Err: err}
		} else {
			err = a.entry(header, r)
		}
		if err != nil {
			u.used = before
			return err
		}
	}
}

// entry processes one entry: 1. it counts the entry, 2. checks its name, 3. applies a whiteout, 4.
// writes the entry if it is kept.
func (a attempt) entry(header *tar.Header, content io.Reader) error {
	if a.used.entries++; a.used.entries > a.limits.Entries {
		return refuse(header.Name, "the image has more than %d entries in its layers", a.limits.Entries)
	}
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := a.clean(header.Name)
	if err != nil {
		return err
	}
	folder, base := path.Split(name)
	switch {
	case base == opaque:
		return a.removeBelow(path.Clean(folder))
	case strings.HasPrefix(base, reserved):
		return nil
	case strings.HasPrefix(base, whiteout):
		return a.whiteout(header.Name, path.Clean(folder), strings.TrimPrefix(base, whiteout))
	case a.leadsToKept(name) && header.Typeflag != tar.TypeDir:
		return refuse(header.Name, "it is a %s; a folder is expected there, since the labels of the image name %s", kindOf(header.Typeflag), strings.Join(a.keep, ", "))
	case !a.keeps(name) || name == ".":
		return nil
	}
	return a.write(name, header, content)
}

// clean returns the path of an entry, or of a hard link's target, relative to the image's root.
func (u *unpacker) clean(name string) (string, error) {
	switch {
	case len(name) > u.limits.Path:
		return "", refuse(name[:u.limits.Path]+"…", "its path has %d bytes; at most %d are allowed", len(name), u.limits.Path)
	case strings.ContainsRune(name, 0):
		return "", refuse(name, "its path has a zero byte")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", refuse(name, `its path has the element ".."`)
	}
	name = path.Clean(strings.TrimLeft(name, "/"))
	if depth := strings.Count(name, "/") + 1; depth > u.limits.Depth {
		return "", refuse(name, "its path has %d elements; at most %d are allowed", depth, u.limits.Depth)
	}
	return name, nil
}

func inside(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

func (u *unpacker) keeps(name string) bool {
	return slices.ContainsFunc(u.keep, func(folder string) bool { return inside(folder, name) })
}

// leadsToKept reports whether the path is a kept folder or one of its parents.
func (u *unpacker) leadsToKept(name string) bool {
	return slices.ContainsFunc(u.keep, func(folder string) bool { return inside(name, folder) })
}

func (a attempt) write(name string, header *tar.Header, content io.Reader) error {
	if err := a.folders(path.Dir(name)); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		if err := a.replace(name, true); err != nil {
			return err
		}
		return a.folders(name)
	}
	if err := a.count(name); err != nil {
		return err
	}
	a.added[name] = true
	switch header.Typeflag {
	case tar.TypeReg:
		return a.file(name, header.Size, content)
	case tar.TypeSymlink:
		return a.symlink(name, header.Linkname)
	case tar.TypeLink:
		return a.link(name, header.Linkname)
	}
	return refuse(header.Name, "it is a %s; files, folders and links are allowed", kindOf(header.Typeflag))
}

// folders creates a folder and its parents, and counts each.
func (a attempt) folders(name string) error {
	for at := name; at != "."; at = path.Dir(at) {
		a.added[at] = true
		if a.used.folders[at] {
			continue
		}
		if err := a.count(at); err != nil {
			return err
		}
		a.used.folders[at] = true
	}
	if err := a.root.MkdirAll(name, 0o700); err != nil {
		return &Refused{Path: name, Reason: "the folder cannot be made", Err: err}
	}
	return nil
}

func (a attempt) count(name string) error {
	if a.used.kept++; a.used.kept > a.limits.Kept {
		return refuse(name, "the image has more than %d files, folders and links to keep", a.limits.Kept)
	}
	return nil
}

// replace removes the entry at a path. A folder is kept if the new entry is a folder.
func (a attempt) replace(name string, folder bool) error {
	found, err := a.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && folder && found.IsDir():
		return nil
	case err != nil:
		return fmt.Errorf("unpacking %q: %w", name, err)
	}
	return a.root.RemoveAll(name)
}

// file writes a file with fixed permissions. The image's permissions (such as setuid), owners and
// extended attributes are dropped.
func (a attempt) file(name string, size int64, content io.Reader) error {
	switch {
	case size > a.limits.File:
		return refuse(name, "it has %d bytes; a file may have at most %d", size, a.limits.File)
	case a.used.bytes+size > a.limits.KeptBytes:
		return refuse(name, "with it, the files to keep have %d bytes; at most %d are allowed", a.used.bytes+size, a.limits.KeptBytes)
	}
	a.used.bytes += size
	if err := a.replace(name, false); err != nil {
		return err
	}
	f, err := a.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("unpacking %q: %w", name, err)
	}
	_, err = io.Copy(f, readsOnly{content})
	return errors.Join(err, f.Close())
}

// readsOnly marks errors of reading the archive, as opposed to errors of writing to the disk.
type readsOnly struct{ io.Reader }

func (r readsOnly) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &Refused{Reason: "it is no tar archive that can be read", Err: err}
	}
	return n, err
}

// symlink writes a symbolic link whose target, resolved from the image's root, is kept, too. The
// link is written as relative, so that an absolute target means the same as in a container.
func (a attempt) symlink(name, target string) error {
	resolved := path.Join(path.Dir(name), target)
	if path.IsAbs(target) {
		resolved = strings.TrimPrefix(path.Clean(target), "/")
	}
	if len(target) > a.limits.Path || resolved == ".." || strings.HasPrefix(resolved, "../") || !a.keeps(resolved) {
		return refuse(name, "it links to %q; links must stay in the kept paths of the image: %s", shortened(target), strings.Join(a.keep, ", "))
	}
	relative, err := filepath.Rel(path.Dir(name), path.Clean(resolved))
	if err != nil {
		return &Refused{Path: name, Reason: "its target cannot be read", Err: err}
	}
	if err := a.replace(name, false); err != nil {
		return err
	}
	return a.root.Symlink(relative, name)
}

func (a attempt) link(name, target string) error {
	resolved, err := a.clean(target)
	if err != nil || !a.keeps(resolved) || resolved == name {
		return refuse(name, "it is a hard link to %q; the target must be another file in the kept paths of the image: %s", shortened(target), strings.Join(a.keep, ", "))
	}
	found, err := a.root.Lstat(resolved)
	if err != nil || !found.Mode().IsRegular() {
		return refuse(name, "it is a hard link to %q, which is no file of the image", shortened(target))
	}
	if err := a.replace(name, false); err != nil {
		return err
	}
	return a.root.Link(resolved, name)
}

// maxNameBytes limits the quoted names and media types of an image, in bytes.
const maxNameBytes = 256

func shortened(s string) string { return text.Clip(s, maxNameBytes) }

// whiteout removes a path of lower layers.
func (a attempt) whiteout(entry, folder, base string) error {
	if base == "" || base == "." || base == ".." {
		return refuse(entry, "it is a whiteout without a name")
	}
	name := path.Join(folder, base)
	if a.added[name] {
		return a.removeBelow(name)
	}
	if !a.keeps(name) && !a.leadsToKept(name) {
		return nil
	}
	return a.root.RemoveAll(name)
}

// removeBelow removes the content of lower layers in a folder. Files of this layer stay, no matter
// where in the layer the whiteout is.
func (a attempt) removeBelow(folder string) error {
	if !a.keeps(folder) && !a.leadsToKept(folder) {
		return nil
	}
	found, err := fs.ReadDir(a.root.FS(), folder)
	if err != nil {
		return nil //nolint:nilerr // There is no such folder: nothing is below it.
	}
	for _, child := range found {
		name := path.Join(folder, child.Name())
		switch {
		case !a.added[name]:
			err = a.root.RemoveAll(name)
		case child.IsDir():
			err = a.removeBelow(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func kindOf(flag byte) string {
	switch flag {
	case tar.TypeReg:
		return "file"
	case tar.TypeLink:
		return "hard link"
	case tar.TypeSymlink:
		return "symbolic link"
	case tar.TypeChar, tar.TypeBlock:
		return "device"
	case tar.TypeFifo:
		return "named pipe"
	}
	return fmt.Sprintf("tar entry of type %q", flag)
}
