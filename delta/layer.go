package delta

import "strings"

// GroupByLayer is a Cutting that leaves every tensor whole and groups them by layer, and inside a layer by expert:
// "model.layers.7.mlp.experts.3.up_proj.weight" is in the group "model.layers.7.mlp.experts.3". What belongs to no
// layer is in the group without a name; a named state keeps groups of its own, "draft/model.layers.0".
func GroupByLayer(state string, t Tensor) []Cut {
	group := layerOf(t.Name)
	if state != "" {
		group = state + "/" + group
	}
	return []Cut{{Group: group}}
}

// layerWords stand before the number of a layer in the names of a tensor, and expertWord before that of an expert.
var layerWords = map[string]bool{"layers": true, "h": true, "blocks": true, "layer": true, "block": true}

const expertWord = "experts"

// layerOf returns the name up to the number of the layer, or of the expert in it; empty if there is none.
func layerOf(name string) string {
	end, word, at := 0, "", 0
	for at < len(name) {
		part, _, _ := strings.Cut(name[at:], ".")
		to := at + len(part)
		if isNumber(part) && (layerWords[word] && end == 0 || word == expertWord) {
			end = to
		}
		word, at = part, to+1
	}
	return name[:end]
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 6 && strings.Trim(s, "0123456789") == ""
}
