package node

import (
	"fmt"
	"reflect"
)

// suggest returns what to do about an unknown field: the name that was probably meant, or the place to look.
func suggest(field string) string {
	best, distance := "", 3 // further away is another word, not a slip
	for _, name := range fieldNames() {
		if d := editDistance(field, name); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return "remove it; sparsecast node --example shows the fields"
	}
	return fmt.Sprintf("did you mean %q?", best)
}

func fieldNames() []string {
	var names []string
	for _, t := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[RunOptions](), reflect.TypeFor[RunConfig](), reflect.TypeFor[LogConfig]()} {
		for i := range t.NumField() {
			if name := t.Field(i).Tag.Get("yaml"); name != ",inline" {
				names = append(names, name)
			}
		}
	}
	return names
}

// editDistance counts the bytes to insert, delete or replace to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
