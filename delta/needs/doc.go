// Package needs is for tests that not every machine can run, as those that mount a disk. Elsewhere they are skipped; in CI
// (the environment variable CI) they fail, so that nothing goes untested there unseen.
package needs
