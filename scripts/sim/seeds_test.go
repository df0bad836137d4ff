package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A seed that fails says whether it would do so again in the same way, and never that it would when it does not.
func TestFailureSaysWhetherItIsExact(t *testing.T) {
	for _, c := range []struct{ name, does, want string }{
		{"the same", "echo 1 >trace; exit 1", "exact: "},
		{"another", "echo $$ >trace; exit 1", "NOT EXACT: "},
		{"passes the second time", "echo 1 >trace; mkdir ../once 2>&- || exit 0; exit 1", "NOT EXACT: "},
		{"no trace", "exit 1", "NOT SHOWN TO BE EXACT: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			binary := filepath.Join(dir, "sim.test")
			//nolint:gosec // it is to be executed
			if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+c.does+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			o := &options{first: 1, seeds: 1, repeat: 1, jobs: 1, patience: time.Minute, dir: dir}
			s := o.all(t.Context(), binary)
			if len(s.Failures) != 1 || !strings.HasPrefix(s.Failures[0].Exact, c.want) || !strings.Contains(s.String(), c.want) {
				t.Errorf("got %s; want one failure, %s", s, c.want)
			}
		})
	}
}
