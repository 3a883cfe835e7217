//go:build !unix

package main

import (
	"fmt"
	"os"
)

// checkWritable returns an error unless this process may create a file in a folder that exists. What
// is no folder is tried when it is written.
func checkWritable(name string) error {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return err
	}
	f, err := os.CreateTemp(name, "pactcheck-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Remove(f.Name())
}
