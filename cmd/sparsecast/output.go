package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// jsonFlag is part of every command whose result a script may want.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print the result as JSON."`
}

// show prints v as JSON if that was asked for, and as text otherwise.
func (j jsonFlag) show(v any, text func()) error {
	if !j.JSON {
		text()
		return nil
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// bytesText writes a number of bytes for people.
func bytesText(n uint64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n), -1
	for ; v >= unit && i < 4; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.3g %cB", v, "kMGTP"[i])
}
