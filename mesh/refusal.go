package mesh

import (
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// refusal is what is known about a record that was not taken. Whom a record names as its signer is proven only where
// the signature was found good.
type refusal struct {
	kind   string  // head, catalogue, ...
	from   peer.ID // who brought it
	signer peer.ID // empty where there is none to be read
	why    error
}

// note counts a verdict and says the refusals. Old news are the everyday case of polling, so they are not said.
func (k *keeper) note(v verdict, r refusal) {
	switch v {
	case stale:
		k.stats.HeadsStale.Add(1)
	case conflicting:
		k.stats.HeadsConflicting.Add(1)
		k.say(topic{r.signer, r.why.Error()}, r) // once a version, which the text names
	case early:
		k.stats.HeadsEarly.Add(1)
		k.say(topic{r.signer, v.String()}, r)
	case forged:
		k.stats.HeadsForged.Add(1)
		k.say(topic{r.signer, v.String()}, r)
	case malformed:
		k.stats.MessagesMalformed.Add(1)
		k.say(topic{r.from, v.String()}, r)
	}
}

func (k *keeper) say(t topic, r refusal) {
	if !k.refused.news(t, r.kind+" refused: "+r.why.Error(), time.Now()) {
		return
	}
	k.log.Warn().Stringer("from", r.from).Stringer("signer", r.signer).Err(r.why).Msgf("%s refused", r.kind)
}
