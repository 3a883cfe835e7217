//go:build pact

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"gatehouse/contracts/report"
)

// write writes the reports that are asked for.
func (c *verifyCommand) write(r *report.Run) error {
	return errors.Join(writeReport(c.JUnit, r.WriteJUnit), writeReport(c.JSON, r.WriteJSON), writeReport(c.Markdown, r.WriteMarkdown))
}

// writeReport writes one report to file, if there is one.
func writeReport(file string, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return fmt.Errorf("write a report: %w", err)
	}
	if err := os.WriteFile(file, content.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write a report: %w", err)
	}
	return nil
}
