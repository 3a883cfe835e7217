package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// output is the name of a file that a command writes; "" = none.
type output string

// Validate returns an error unless the file can be written. It leaves the file as it is.
func (o output) Validate() error {
	if o == "" {
		return nil
	}
	if filepath.Base(string(o)) == "-" { // kong has made the path absolute
		return errors.New("a report needs the name of a file; standard output is /dev/stdout")
	}
	info, err := os.Stat(string(o))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o.create()
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder", o)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return checkWritable(string(o)) // opening a pipe would wait for its reader
	}
	return o.open(os.O_WRONLY)
}

// create creates the file and removes it. A superuser may write where no file can be.
func (o output) create() error {
	if err := o.open(os.O_WRONLY | os.O_CREATE); err != nil {
		return err
	}
	file, err := filepath.EvalSymlinks(string(o)) // a link stays, and so does its target's folder
	if err != nil {
		return err
	}
	return os.Remove(file)
}

func (o output) open(flags int) error {
	f, err := os.OpenFile(string(o), flags, 0o644)
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", o, err)
	}
	return f.Close()
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
