package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestReaders(t *testing.T) {
	folder := t.TempDir()
	readers := filepath.Join(folder, "readers")
	if out, err := exec.Command("go", "build", "-o", readers, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(folder, "new", "files")
	small := []string{"-dir", files, "-rows", "50", "-networks", "20", "-places", "1"}
	compare := []string{"-dir", files, "-program", program, "-tools", folder}
	for _, c := range []struct {
		name  string
		args  []string
		code  int
		wants []string
	}{
		{"no arguments", nil, 0, []string{"readers make", "-rows int"}},
		{"help", []string{"-h"}, 0, []string{"readers make", "-rows int"}},
		{"help of a command", []string{"run", "-h"}, 0, []string{"readers make", "-rows int"}},
		{"unknown command", []string{"walk"}, 1, []string{`unknown command "walk"`}},
		{"unknown flag", []string{"make", "-speed", "1"}, 1, []string{"-speed"}},
		{"run before make", append([]string{"run"}, compare...), 1,
			[]string{`run "readers make -dir ` + files + `" first`}},
		{"no rows", []string{"make", "-dir", files, "-rows", "0"}, 1, []string{"-rows"}},
		{"make", append([]string{"make"}, small...), 0, nil},
		{"loop", []string{"loop", "-dir", files}, 0, nil},
		{"gatehouse is missing", []string{"run", "-dir", files, "-program", "gatehouse"}, 1,
			[]string{"gatehouse is missing"}},
		{"others are missing", append([]string{"run"}, compare...), 0, []string{
			"gatehouse lookup                50 ", "bare loop                       50 ",
			"mmdblookup --ip          is not installed: run scripts/reader-tools",
			"mmdbctl read             is not installed", "mmdbinspect              is not installed",
			"npm maxmind              is not installed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := exec.Command(readers, c.args...)
			command.Env = append(os.Environ(), "PATH=")
			out, _ := command.CombinedOutput()
			if got := command.ProcessState.ExitCode(); got != c.code {
				t.Errorf("exit code %d, want %d: %s", got, c.code, out)
			}
			for _, want := range c.wants {
				if !strings.Contains(string(out), want) {
					t.Errorf("got %s, want %q in it", out, want)
				}
			}
		})
	}
}
