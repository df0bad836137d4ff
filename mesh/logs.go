package mesh

import (
	"log/slog"

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
	return zerolog.NewSlogHandler(log)
}
