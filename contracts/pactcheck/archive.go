package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"gatehouse/contracts/lint"
	"gatehouse/contracts/report"
)

// maxUnpacked limits a file of an archive, in bytes.
const maxUnpacked = 512 << 20

// isArchive reports whether a file is an archive of pactcheck-dist, by its name.
func isArchive(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".zip")
}

// unpack writes the parts of an archive of pactcheck-dist that diff needs to a folder: the document,
// the pacts and the program.
func unpack(name, folder string) error {
	wanted := func(member string) string {
		_, rest, _ := strings.Cut(path.Clean(member), "/")
		if rest == "openapi.yaml" || rest == packedProgram() || path.Dir(rest) == "pacts" && path.Ext(rest) == ".json" {
			return filepath.Join(folder, filepath.FromSlash(rest))
		}
		return ""
	}
	var err error
	if strings.HasSuffix(name, ".zip") {
		err = unzip(name, wanted)
	} else {
		err = untar(name, wanted)
	}
	if err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "openapi.yaml")); err != nil {
		return fmt.Errorf("%s has no openapi.yaml: is it an archive of pactcheck-dist?", name)
	}
	return nil
}

// packedProgram is the name of the program in an archive.
func packedProgram() string {
	if runtime.GOOS == "windows" {
		return "pactcheck.exe"
	}
	return "pactcheck"
}

func untar(name string, wanted func(string) string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg:
			continue
		}
		if to := wanted(h.Name); to != "" {
			if err := save(to, r); err != nil {
				return err
			}
		}
	}
}

func unzip(name string, wanted func(string) string) (err error) {
	r, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for _, member := range r.File {
		to := wanted(member.Name)
		if to == "" || member.FileInfo().IsDir() {
			continue
		}
		content, err := member.Open()
		if err != nil {
			return err
		}
		if err := errors.Join(save(to, content), content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// save writes a file that this user can run.
func save(name string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, maxUnpacked+1))
	if err == nil && n > maxUnpacked {
		err = errors.New("a file in it is too large")
	}
	return errors.Join(err, f.Close())
}

// verifyWith verifies the pacts of one unpacked archive with the program of another. Each failure is
// a change that breaks its consumer.
func verifyWith(ctx context.Context, older, newer, provider string) ([]lint.Change, error) {
	program, pacts := filepath.Join(newer, packedProgram()), filepath.Join(older, "pacts")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("the new archive has no %s: --no-verify compares the documents only", packedProgram())
	}
	written := filepath.Join(newer, "verified.json")
	out, failed := exec.CommandContext(ctx, program, "verify", "--provider", provider, "--json", written, pacts).
		CombinedOutput()
	var r report.Run
	text, err := os.ReadFile(written)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("the pactcheck of the new archive does not run here (%w): %s: --no-verify compares the documents only",
			errors.Join(failed, err), report.Line(string(out[:min(len(out), 300)])))
	}
	var all []lint.Change
	for _, p := range r.Pacts {
		for _, it := range p.Interactions {
			if it.Result != report.Failed {
				continue
			}
			var problems []string
			for _, problem := range it.Problems {
				problems = append(problems, problem.String())
			}
			all = append(all, lint.Change{Class: lint.BreaksConsumer, Operation: it.Request, Rule: "verify",
				Message: strings.Join(problems, "; "), PinnedBy: []string{p.Consumer + ": " + it.Description}})
		}
	}
	return all, nil
}
