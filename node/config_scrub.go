package node

import (
	"errors"

	"github.com/dustin/go-humanize"
)

// scrubOff is the value of Config.Scrub for no check in the background.
const scrubOff = "off"

func (c *Config) checkScrub() error {
	if c.Scrub == scrubOff {
		return nil
	}
	if n, err := humanize.ParseBytes(c.Scrub); err != nil || n == 0 {
		return mistake("scrub", errors.New("no speed"), "write it in bytes a second, as 64MB, or off")
	}
	return nil
}

// scrubPace returns Scrub in bytes a second, 0 for off.
func (c *Config) scrubPace() uint64 {
	n, _ := humanize.ParseBytes(c.Scrub) // it is valid, or off
	return n
}
