//go:build unix

package main

import (
	"fmt"
	"syscall"
)

// checkWritable returns an error unless this process may write to a file or folder that exists.
func checkWritable(name string) error {
	if err := syscall.Access(name, 2); err != nil { // W_OK
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return nil
}
