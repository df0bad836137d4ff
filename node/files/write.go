package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces name by data and makes the directories above it. It is atomic but not yet durable: see Sync.
func (d *Dir) WriteFile(name string, data []byte) error {
	return d.replace(name, data, func(File) error { return nil })
}

// WriteDurable is WriteFile and Sync in one, in the order that keeps the old content when a step fails.
func (d *Dir) WriteDurable(name string, data []byte) error {
	if err := d.replace(name, data, File.Sync); err != nil {
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
	if err := d.fs.MkdirAll(filepath.Dir(dst), dirMode); err != nil {
		return d.Explain(err)
	}
	temp := filepath.Join(filepath.Dir(dst), tempMark+rand.Text())
	if err := d.fs.Symlink(target, temp); err != nil {
		return d.Explain(err)
	}
	if err := d.rename(temp, dst); err != nil {
		return errors.Join(d.Explain(err), d.fs.Remove(temp))
	}
	return d.syncDirs(name)
}

// Readlink returns where the symbolic link name leads, as Symlink took it.
func (d *Dir) Readlink(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	target, err := d.fs.Readlink(d.Path(name))
	return target, d.Explain(err)
}

// replace writes data to a temporary file beside name, calls settle on it, and renames it.
func (d *Dir) replace(name string, data []byte, settle func(File) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	if len(data) > MaxFile {
		return fmt.Errorf("write %s: %d bytes, at most %d", d.Path(name), len(data), MaxFile)
	}
	dst := d.Path(name)
	f, temp, err := d.createTemp(filepath.Dir(dst))
	if err != nil {
		return fmt.Errorf("write %s: %w", dst, d.Explain(err))
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = settle(f)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = d.rename(temp, dst)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", dst, errors.Join(d.Explain(err), d.fs.Remove(temp)))
	}
	return nil
}

// rename gives a finished file its name. A directory there is never replaced, and the system's words for that
// (file exists) would not tell what to do.
func (d *Dir) rename(temp, dst string) error {
	err := d.fs.Rename(temp, dst)
	if err == nil {
		return nil
	}
	if info, e := d.fs.Lstat(dst); e == nil && info.IsDir() {
		return fmt.Errorf("%w: %s is a directory, where a file of this node belongs: move it away", err, dst)
	}
	return err
}

// createTemp makes a new file in dir, and makes dir only when that turns out to be absent: most writes find it there.
func (d *Dir) createTemp(dir string) (f File, path string, err error) {
	path = filepath.Join(dir, tempMark+rand.Text())
	create := func() (File, error) { return d.fs.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode) }
	if f, err = create(); !errors.Is(err, fs.ErrNotExist) {
		return f, path, err
	}
	if err := d.fs.MkdirAll(dir, dirMode); err != nil {
		return nil, "", err
	}
	f, err = create()
	return f, path, err
}
