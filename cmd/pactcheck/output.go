//go:build pact

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// output is the name of a file that a command writes; "" = none.
type output string

// Validate returns an error unless the file can be written. It writes nothing.
func (o output) Validate() error {
	info, err := os.Stat(string(o))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return checkFolder(filepath.Dir(string(o)))
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder", o)
	case err == nil:
		err = checkWritable(string(o))
	}
	return err
}

// write writes the file, if there is one.
func (o output) write(content func(io.Writer) error) error {
	if o == "" {
		return nil
	}
	var b bytes.Buffer
	err := content(&b)
	if err == nil {
		err = os.WriteFile(string(o), b.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write a report: %w", err)
	}
	return nil
}

// folder is the name of a folder that a command creates if needed.
type folder string

// Validate returns an error unless files can be created in the folder. It creates nothing.
func (f folder) Validate() error {
	for name := string(f); ; name = filepath.Dir(name) {
		if err := checkFolder(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// checkFolder returns an error unless files can be created in a folder that exists.
func checkFolder(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder", name)
	}
	if err == nil {
		err = checkWritable(name)
	}
	return err
}

func checkWritable(name string) error {
	if err := syscall.Access(name, 2); err != nil { // W_OK
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return nil
}
