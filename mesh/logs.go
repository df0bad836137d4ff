package mesh

import (
	"context"
	"log/slog"
	"strings"

	"github.com/libp2p/go-libp2p/gologshim"
	"github.com/rs/zerolog"
)

// BridgeLogs sends what libp2p and gossipsub log to log: errors; at debug level warnings too, most of which are peers
// that went away; at trace level everything, which is a great deal.
// Call it once, before the first host.
func BridgeLogs(log zerolog.Logger) { gologshim.SetDefaultHandler(bridge(log)) }

func bridge(log zerolog.Logger) slog.Handler {
	switch log.GetLevel() {
	case zerolog.TraceLevel, zerolog.Disabled:
	case zerolog.DebugLevel:
		log = log.Level(zerolog.WarnLevel)
	default:
		log = log.Level(max(log.GetLevel(), zerolog.ErrorLevel))
	}
	return hush{zerolog.NewSlogHandler(log)}
}

// hush drops what libp2p calls an error and is none: a listener that was closed as soon as it was opened.
type hush struct{ slog.Handler }

func (h hush) Handle(ctx context.Context, r slog.Record) error {
	closed := false
	r.Attrs(func(a slog.Attr) bool {
		closed = closed || a.Key == "err" && strings.HasSuffix(a.Value.String(), "listener closed")
		return !closed
	})
	if closed && r.Message == "swarm listener accept error" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h hush) WithAttrs(attrs []slog.Attr) slog.Handler { return hush{h.Handler.WithAttrs(attrs)} }
func (h hush) WithGroup(name string) slog.Handler       { return hush{h.Handler.WithGroup(name)} }
