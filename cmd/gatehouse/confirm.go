package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// confirm says what a command ends, and asks a person at a terminal, unless yes is set.
func (p *program) confirm(what string, yes bool) error {
	if _, err := fmt.Fprintln(p.stderr, what); err != nil {
		return err
	}
	if yes || !isTerminal(p.stdin) {
		return nil
	}
	if _, err := fmt.Fprint(p.stderr, "Type yes to go on: "); err != nil {
		return err
	}
	line, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the reply: %w", err)
	}
	if strings.TrimSpace(line) != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// isTerminal reports whether r is a terminal.
func isTerminal(r any) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && !os.SameFile(info, null)
}
