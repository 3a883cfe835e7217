package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"gatehouse/actors/partition"
)

// versions upgrades three nodes one after the other and goes back, all while tokens are used: from
// this version to the next one, and from an old one to this, if there is an old one.
func versions(ctx context.Context, l *Lab) (_ string, err error) {
	folder, err := os.MkdirTemp("", "nodes")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	next, err := BuildNext(ctx, folder)
	if err != nil {
		return "", err
	}
	text, err := l.upgrade(ctx, l.Program, next, true)
	text = "this and the next: " + text
	if l.Old == "" || err != nil {
		return text, err
	}
	more, err := l.upgrade(ctx, l.Old, l.Program, false)
	return text + "; old and this: " + more, err
}

// upgrade runs three nodes of one version, upgrades them to another and goes back. With next, the
// other one is that of BuildNext.
func (l *Lab) upgrade(ctx context.Context, from, to string, next bool) (string, error) {
	lab := *l
	lab.Program = from
	var unknown, newer atomic.Int64
	config := Config{Lines: func(_ int, line string) {
		switch line {
		case unknownKind:
			unknown.Add(1)
		case nextVersion:
			newer.Add(1)
		}
	}}
	_, s, err := lab.windows(ctx, config, 3, 3*Limit/2, l.Length, defaultTimeout,
		func(ctx context.Context, c *Cluster, length time.Duration) error {
			pause(ctx, length/20)
			before, err := c.frameVersions(ctx)
			if err != nil {
				return err
			}
			for _, program := range []string{to, from} {
				if err := c.roll(ctx, program, length/20); err != nil {
					return err
				}
				got, err := c.frameVersions(ctx)
				if err != nil {
					return err
				}
				l.Log("all nodes have changed; they speak the versions %v", got)
				want := before
				if program == to {
					want = nextFrames(next)
				}
				if !slices.Equal(got, want) {
					return fmt.Errorf("the nodes speak the versions %v, want %v", got, want)
				}
			}
			return nil
		})
	if err != nil {
		return "", err
	}
	text, err := s.String(), s.CheckExact()
	if next {
		text += fmt.Sprintf("; %d messages of an unknown kind refused", unknown.Load())
		if unknown.Load() == 0 || newer.Load() == 0 {
			err = errors.Join(err, fmt.Errorf("got %d refused messages of an unknown kind, and %d nodes "+
				"that got frames of the next version, want some of both", unknown.Load(), newer.Load()))
		}
	}
	return text, err
}

// nextFrames returns the versions of frames that nodes of one version speak.
func nextFrames(next bool) []int {
	if next {
		return []int{partition.Version + 1}
	}
	return []int{partition.Version}
}

// roll restarts each node in turn with a program.
func (c *Cluster) roll(ctx context.Context, program string, rest time.Duration) error {
	nodes := c.Nodes()
	for _, n := range nodes {
		n.Program = program
		err := errors.Join(n.Stop(), n.Start(ctx), c.Balancer.await(ctx, len(nodes)))
		if err != nil {
			return err
		}
		pause(ctx, rest)
	}
	return nil
}

// frameVersions returns the versions of frames that the nodes speak, each once.
func (c *Cluster) frameVersions(ctx context.Context) ([]int, error) {
	text, failed := c.Command(ctx, "cluster", "status", "--json") // it fails while partitions move
	var status struct {
		Nodes []struct {
			FrameVersion int `json:"frame_version"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(text, &status); err != nil {
		return nil, errors.Join(fmt.Errorf("read the status: %w", err), failed)
	}
	all := map[int]bool{}
	for _, n := range status.Nodes {
		all[n.FrameVersion] = true
	}
	return slices.Sorted(maps.Keys(all)), nil
}
