package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"gatehouse/actors/partition"
	"gatehouse/loadtest/lab"
)

// edit changes one place of a source file.
type edit struct {
	file string // below the module
	old  *regexp.Regexp
	new  string
}

// nextEdits make the source of the next version: it understands frames of a version more, and a new
// kind of message. Against the rule, it sends that kind at once, each second. It prints when a
// frame has the next version, and when another node does not know the new kind.
var nextEdits = []edit{
	{"actors/partition/message.go", regexp.MustCompile(`(?m)^const Version = \d+$`),
		"const Version = " + strconv.Itoa(partition.Version+1)},
	{"providers/cluster/ask.go", regexp.MustCompile(`(?m)^\tf, err := partition\.ParseFrame\(b\)$`),
		"$0\n\tnoteVersion(f.Version)"},
	{"providers/cluster/ask.go", regexp.MustCompile(`(?m)^\t\tdefault:\n\t\t\tl\.tell\(` +
		`&partition\.Message\{Kind: partition\.Unsupported`), "\t\tcase nextKind:\n$0"},
	{"providers/cluster/lane.go", regexp.MustCompile(`(?m)^\t\tcase partition\.Unsupported:$`),
		"$0\n\t\t\tprintln(\"" + unknownKind + "\")"},
	{"providers/cluster/node.go", regexp.MustCompile(`(?m)^\tn\.meet\(nil, nil\)$`),
		"$0\n\tn.sendNext(clock)"},
}

// The lines that the next version prints.
const (
	unknownKind = "another node does not know the next kind of message"
	nextVersion = "a frame has the next version"
)

// nextFile is a source file that the next version has more.
const nextFile = `package cluster

import (
	"sync"
	"time"

	"gatehouse/actors/partition"
)

const nextKind partition.Kind = 200

var noted sync.Once

func noteVersion(version int) {
	if version == partition.Version {
		noted.Do(func() { println("` + nextVersion + `") })
	}
}

func (n *Node) sendNext(clock time.Duration) {
	for _, l := range n.roster.Load().lanes {
		l.tell(&partition.Message{Kind: nextKind, Body: []byte("next")}, clock)
	}
}
`

// BuildNext builds the next version of gatehouse in a folder, from the source with nextEdits.
func BuildNext(ctx context.Context, folder string) (program string, err error) {
	overlay, err := writeNext(ctx, folder)
	if err != nil {
		return "", fmt.Errorf("make the next version: %w", err)
	}
	return lab.BuildAs(ctx, filepath.Join(folder, "gatehouse-next"), "-overlay", overlay)
}

// writeNext writes the sources of the next version, and returns the file that names them.
func writeNext(ctx context.Context, folder string) (overlay string, err error) {
	module, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Module.Dir}}",
		"gatehouse/loadtest/nodes").Output()
	if err != nil {
		return "", fmt.Errorf("find the source: %w", err)
	}
	root := strings.TrimSpace(string(module))
	texts := map[string]string{"providers/cluster/next.go": nextFile}
	for _, e := range nextEdits {
		text, ok := texts[e.file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return "", err
			}
			text = string(read)
		}
		if len(e.old.FindAllString(text, 2)) != 1 {
			return "", fmt.Errorf("%s does not have %s once", e.file, e.old)
		}
		texts[e.file] = e.old.ReplaceAllString(text, e.new)
	}
	var replace struct{ Replace map[string]string }
	replace.Replace = map[string]string{}
	for file, text := range texts {
		path := filepath.Join(folder, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace.Replace[filepath.Join(root, file)] = path
	}
	text, err := json.Marshal(replace)
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, errors.Join(err, os.WriteFile(overlay, text, 0o600))
}
