package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/snapshot"
	"go.uber.org/zap"
)

// Save writes the database as it is now to a file, with a checksum. The file
// appears when it is complete and on disk; one that is there is replaced.
func (s *Server) Save(ctx context.Context, path string) error {
	return save(ctx, s.endpoint, s.core.logger(), path)
}

// Save is that of Server.
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
