package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"gatehouse/loadtest"
)

// output is a form of the report and where it goes.
type output struct {
	flag  string
	name  string
	file  *os.File
	made  bool // the file is new
	write func(*loadtest.Report, io.Writer) error
}

// outputs are the files of a run.
type outputs []*output

// openOutputs opens all files before the run, so that none fails after it. Existing files keep
// their content until the report is written.
func (c *runCommand) openOutputs() (outputs, error) {
	var all outputs
	for _, o := range []*output{{flag: "--json", name: c.JSON, write: (*loadtest.Report).WriteJSON},
		{flag: "--html", name: c.HTML, write: (*loadtest.Report).WriteHTML},
		{flag: "--hdr", name: c.HDR, write: (*loadtest.Report).WriteHDR}} {
		if o.name == "" || o.name == "-" && o.flag == "--json" {
			continue
		}
		err := o.open()
		if err == nil {
			all = append(all, o)
			err = all.apart()
		}
		if err != nil {
			return nil, errors.Join(usagef("%s: %s", o.flag, err), all.leave())
		}
	}
	return all, nil
}

func (o *output) open() (err error) {
	if o.name == "-" {
		return errors.New("only --json can write to standard output (-): name a file")
	}
	if o.file, err = os.OpenFile(o.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
		o.made = true
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		o.file, err = os.OpenFile(o.name, os.O_WRONLY|os.O_CREATE, 0o666)
	}
	return err
}

// apart returns an error if the last output has the file of another.
func (all outputs) apart() error {
	last := all[len(all)-1]
	info, err := last.file.Stat()
	if err != nil {
		return err
	}
	for _, before := range all[:len(all)-1] {
		other, err := before.file.Stat()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() && os.SameFile(info, other) {
			return fmt.Errorf("%s is the file of %s", last.name, before.flag)
		}
	}
	return nil
}

// writeAll writes every form, also if one fails.
func (all outputs) writeAll(report *loadtest.Report) error {
	var errs []error
	for _, o := range all {
		if err := o.put(report); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.flag, err))
		}
	}
	return errors.Join(errs...)
}

func (o *output) put(report *loadtest.Report) error {
	info, err := o.file.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = o.file.Truncate(0)
	}
	if err == nil {
		err = o.write(report, o.file)
	}
	return errors.Join(err, o.file.Close())
}

// leave closes the files of a run without a report, and removes new ones.
func (all outputs) leave() error {
	var errs []error
	for _, o := range all {
		errs = append(errs, o.file.Close())
		if o.made {
			errs = append(errs, os.Remove(o.name))
		}
	}
	return errors.Join(errs...)
}
