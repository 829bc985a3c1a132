package etcd

import (
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logCore passes etcd's warnings and errors on to our log.
type logCore struct {
	log    logr.Logger
	fields []zapcore.Field
	// closing is true from the moment we stop etcd: from then on it reports
	// every listener that we close as an error.
	closing *atomic.Bool
}

var _ zapcore.Core = &logCore{}

// harmless are warnings about what we chose: one socket for gRPC and HTTP, and
// no etcd users (the directory's mode is the access control).
var harmless = []string{
	"Running http and grpc server on single port. This is not recommended for production.",
	"simple token is not cryptographically signed",
}

func newLogCore(log logr.Logger) *logCore {
	return &logCore{log: log, closing: &atomic.Bool{}}
}

func (c *logCore) logger() *zap.Logger {
	return zap.New(c)
}

// Enabled implements zapcore.LevelEnabler.
func (c *logCore) Enabled(level zapcore.Level) bool {
	return level >= zapcore.WarnLevel && !c.closing.Load()
}

// With implements zapcore.Core.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{log: c.log, closing: c.closing, fields: slices.Concat(c.fields, fields)}
}

// Check implements zapcore.Core.
func (c *logCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) || slices.Contains(harmless, entry.Message) {
		return checked
	}
	return checked.AddCore(entry, c)
}

// Write implements zapcore.Core.
func (c *logCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range slices.Concat(c.fields, fields) {
		field.AddTo(encoder)
	}
	var keysAndValues []any
	for _, key := range slices.Sorted(maps.Keys(encoder.Fields)) {
		keysAndValues = append(keysAndValues, key, encoder.Fields[key])
	}
	if entry.Level >= zapcore.ErrorLevel {
		c.log.Error(errors.New(entry.Message), "etcd reports an error", keysAndValues...)
		return nil
	}
	c.log.Info("etcd warns: "+entry.Message, keysAndValues...)
	return nil
}

// Sync implements zapcore.Core.
func (c *logCore) Sync() error {
	return nil
}
