package overlay

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// BuildTest compiles the tests of the package pkg with patches into the file out. Both are relative to root, where the
// go command runs; dir takes the patched files. The binary is the same from whatever folder it was built.
func BuildTest(ctx context.Context, root, dir, pkg, out string, patches []Patch) error {
	list, err := Write(dir, root, patches)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-overlay", list, "-o", out, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // with cgo, C's threads come and go as they like
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("overlay: build %s: %w\n%s", pkg, err, bytes.TrimSpace(said))
	}
	return nil
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
