package etcd

import (
	"fmt"
	"path/filepath"
)

// ReturnsPages tells whether it was asked to call GiveBack while etcd is idle.
func (s *Server) ReturnsPages() bool { return s.returnPages }

// GiveBack takes the pages of the database out of this process' memory. They stay
// where the kernel keeps what was read of files: who reads them next gets them from
// there, unless somebody needed that memory more.
//
// etcd maps its file with MAP_POPULATE. After a start all of it counts as memory of
// this process, and every page that is read or written stays. Most of these bytes are
// read once in their life.
func (s *Server) GiveBack() error {
	done := make(chan error, 1)
	// While the pages go, the file must not be mapped elsewhere, or what has come to
	// its place would lose its content. Commits and defragmentation wait for readers,
	// and the end of etcd for what is attached to it.
	s.etcd.Server.GoAttach(func() {
		reading := s.etcd.Server.Backend().ReadTx()
		reading.RLock()
		defer reading.RUnlock()
		done <- unmapPages(s.database)
	})
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("giving back the pages of %s: %w", s.database, err)
		}
		return nil
	case <-s.etcd.Server.StoppingNotify():
		return nil
	}
}

// databaseFile is the database of a data directory, by the name that the kernel
// has for it.
func databaseFile(dir string) (string, error) {
	path, err := filepath.EvalSymlinks(filepath.Join(dataDir(dir), "member", "snap", "db"))
	if err != nil {
		return "", fmt.Errorf("finding the database: %w", err)
	}
	return path, nil
}
