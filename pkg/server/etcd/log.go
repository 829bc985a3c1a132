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

type entry struct {
	Level   zapcore.Level  `json:"level"`
	Message string         `json:"message"`
	Fields  map[string]any `json:"fields,omitempty"`
}

func (e entry) to(log logr.Logger) {
	var keysAndValues []any
	for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
		keysAndValues = append(keysAndValues, key, e.Fields[key])
	}
	if e.Level >= zapcore.ErrorLevel {
		log.Error(errors.New(e.Message), "etcd reports an error", keysAndValues...)
		return
	}
	log.Info("etcd warns: "+e.Message, keysAndValues...)
}

type logCore struct {
	write  func(entry)
	fields []zapcore.Field
	// closing is true after Penstock has begun to stop etcd: etcd then reports each listener that
	// Penstock closes as an error.
	closing *atomic.Bool
}

var _ zapcore.Core = &logCore{}

// harmless lists warnings about Penstock's own settings: one socket for gRPC and HTTP, and no etcd
// users (the directory's mode is the access control).
var harmless = []string{
	"Running http and grpc server on single port. This is not recommended for production.",
	"simple token is not cryptographically signed",
}

func newLogCore(write func(entry)) *logCore {
	return &logCore{write: write, closing: &atomic.Bool{}}
}

func logTo(log logr.Logger) func(entry) {
	return func(e entry) { e.to(log) }
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
	return &logCore{write: c.write, closing: c.closing, fields: slices.Concat(c.fields, fields)}
}

// Check implements zapcore.Core.
func (c *logCore) Check(written zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(written.Level) || slices.Contains(harmless, written.Message) {
		return checked
	}
	return checked.AddCore(written, c)
}

// Write implements zapcore.Core.
func (c *logCore) Write(written zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range slices.Concat(c.fields, fields) {
		field.AddTo(encoder)
	}
	c.write(entry{Level: written.Level, Message: written.Message, Fields: encoder.Fields})
	return nil
}

// Sync implements zapcore.Core.
func (c *logCore) Sync() error {
	return nil
}
