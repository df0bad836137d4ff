package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

// publisher hands steps to a trainer that may die at any moment, as the script of a user would: by the command line,
// its exit codes and its JSON.
type publisher struct {
	trainer *host
	retries int
}

// publish returns when the step is out, with the version that it became.
func (p *publisher) publish(ctx context.Context, number int, path string) (v api.VersionInfo, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var r api.PublishResult
		said, err := p.command(ctx, &r, "publish", path, "--number", strconv.Itoa(number))
		if err == nil {
			return r.VersionInfo, nil
		}
		if ctx.Err() != nil {
			return v, fmt.Errorf("step %d was never published: %w: %s", number, err, said)
		}
		if err := explained(said); err != nil {
			return v, err
		}
		// The answer to a publish that went well may have been lost: then the number is taken, by this very step.
		var s api.Status
		if _, err := p.command(ctx, &s, "status"); err == nil && s.Latest != nil && s.Latest.Number == uint64(number) {
			return *s.Latest, nil
		}
		p.retries++
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// command runs sparsecast with the trainer's configuration, reads its answer into v and returns what it said of errors.
func (p *publisher) command(ctx context.Context, v any, args ...string) (said string, err error) {
	cmd := exec.CommandContext(ctx, "sparsecast", append(args, "--json", "--config", p.trainer.config())...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != 1 && ctx.Err() == nil {
			return "", fmt.Errorf("%v ended with %w, want 0 or 1", args, err)
		}
		return errs.String(), err
	}
	return "", json.Unmarshal(out.Bytes(), v)
}

// explained wants an error, and a hint what to do about it.
func explained(said string) error {
	if strings.Contains(said, "sparsecast: error: ") && strings.Contains(said, "\nhint: ") {
		return nil
	}
	return fmt.Errorf("a publish failed without an error or a hint: %q", said)
}
