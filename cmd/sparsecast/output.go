package main

import (
	"encoding/json"
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
