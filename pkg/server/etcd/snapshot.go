package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/snapshot"
	"go.uber.org/zap"
)

// Save writes a consistent copy of the database to a file, with a checksum. The file appears, or
// replaces an existing file, only when it is complete and on disk.
func (s *Server) Save(ctx context.Context, path string) error {
	return save(ctx, s.endpoint, s.core.logger(), path)
}

// Save does the same as Server.Save.
func (p *Process) Save(ctx context.Context, path string) error {
	return save(ctx, p.endpoint, newLogCore(logTo(p.config.Log)).logger(), path)
}

func save(ctx context.Context, endpoint string, log *zap.Logger, path string) error {
	client := clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: readyTimeout}
	if _, err := snapshot.SaveWithVersion(ctx, log, client, path); err != nil {
		return fmt.Errorf("saving a snapshot to %s: %w", path, err)
	}
	return nil
}
