package mesh

import (
	"log/slog"

	"github.com/libp2p/go-libp2p/gologshim"
	"github.com/rs/zerolog"
)

// BridgeLogs sends what libp2p and gossipsub log to log, from warnings up. At trace level it sends
// everything, which is a great deal.
// Call it once, before the first host.
func BridgeLogs(log zerolog.Logger) { gologshim.SetDefaultHandler(bridge(log)) }

func bridge(log zerolog.Logger) slog.Handler {
	if log.GetLevel() > zerolog.TraceLevel && log.GetLevel() < zerolog.WarnLevel {
		log = log.Level(zerolog.WarnLevel)
	}
	return zerolog.NewSlogHandler(log)
}
