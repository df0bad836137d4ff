package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces name by data and makes the directories above it. It is atomic but not yet durable: see Sync.
func (d *Dir) WriteFile(name string, data []byte) error {
	return d.replace(name, data, func(*os.File) error { return nil })
}

// WriteDurable is WriteFile and Sync in one, in the order that keeps the old content when a step fails.
func (d *Dir) WriteDurable(name string, data []byte) error {
	if err := d.replace(name, data, (*os.File).Sync); err != nil {
		return err
	}
	return d.syncDirs(name)
}

// Symlink makes name a durable symbolic link to target, and replaces in one step what name was before.
func (d *Dir) Symlink(target, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	dst := d.Path(name)
	if err := os.MkdirAll(filepath.Dir(dst), dirMode); err != nil {
		return explain(err)
	}
	temp := filepath.Join(filepath.Dir(dst), tempMark+rand.Text())
	if err := os.Symlink(target, temp); err != nil {
		return explain(err)
	}
	if err := rename(temp, dst); err != nil {
		return errors.Join(explain(err), os.Remove(temp))
	}
	return d.syncDirs(name)
}

// replace writes data to a temporary file beside name, calls settle on it, and renames it.
func (d *Dir) replace(name string, data []byte, settle func(*os.File) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	if len(data) > MaxFile {
		return fmt.Errorf("write %s: %d bytes, at most %d", d.Path(name), len(data), MaxFile)
	}
	dst := d.Path(name)
	f, err := createTemp(filepath.Dir(dst))
	if err != nil {
		return fmt.Errorf("write %s: %w", dst, explain(err))
	}
	_, err = f.Write(data)
	if err == nil {
		err = settle(f)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = rename(f.Name(), dst)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", dst, errors.Join(explain(err), os.Remove(f.Name())))
	}
	return nil
}

// rename gives a finished file its name. A directory there is never replaced, and the system's words for that
// (file exists) would not tell what to do.
func rename(temp, dst string) error {
	err := os.Rename(temp, dst)
	if err == nil {
		return nil
	}
	if info, e := os.Lstat(dst); e == nil && info.IsDir() {
		return fmt.Errorf("%w: %s is a directory, where a file of this node belongs: move it away", err, dst)
	}
	return err
}

// createTemp makes a new file in dir, and makes dir only when that turns out to be absent: most writes find it there.
func createTemp(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, tempMark+"*") // mode 0600
	if !errors.Is(err, os.ErrNotExist) {
		return f, err
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, tempMark+"*")
}
