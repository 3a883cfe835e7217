package cluster_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"gatehouse/actors/partition"
)

var errCut = errors.New("the database cannot be reached")

// rows are the rows of a cluster, as the database keeps them.
type rows struct {
	mu         sync.Mutex
	nodes      map[string]partition.Node
	partitions map[string]partition.Row
	last       int64
}

func newRows() *rows {
	r := &rows{nodes: map[string]partition.Node{}, partitions: map[string]partition.Row{}}
	for i := range partition.Tokens {
		name := partition.Name(i)
		r.partitions[name] = partition.Row{Name: name}
	}
	return r
}

// commit adds a change and returns its number.
func (r *rows) commit() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	return r.last
}

func (r *rows) lastChange() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// edit changes the row of a node.
func (r *rows) edit(id string, f func(*partition.Node)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[id]
	f(&n)
	r.nodes[id] = n
}

// store is the way of one node to the rows, which can be cut.
type store struct {
	*rows
	cutMu sync.Mutex
	isCut bool
}

func (s *store) cut(cut bool) {
	s.cutMu.Lock()
	defer s.cutMu.Unlock()
	s.isCut = cut
}

// begin locks the rows.
func (s *store) begin() error {
	s.cutMu.Lock()
	defer s.cutMu.Unlock()
	if s.isCut {
		return errCut
	}
	s.mu.Lock()
	return nil
}

func (s *store) JoinCluster(_ context.Context, n partition.Node, former string) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	delete(s.nodes, former)
	n.Beat = 1
	s.nodes[n.ID] = n
	name := partition.LookupsName(n.Egress)
	if _, ok := s.partitions[name]; !ok {
		s.partitions[name] = partition.Row{Name: name}
	}
	return nil
}

func (s *store) Beat(_ context.Context, n partition.Node) (int64, bool, error) {
	if err := s.begin(); err != nil {
		return 0, false, err
	}
	defer s.mu.Unlock()
	row, ok := s.nodes[n.ID]
	if !ok {
		return 0, false, partition.ErrGone
	}
	row.Beat++
	if n.State != partition.Joining {
		row.State = n.State
	}
	row.Seen, row.Certificates = n.Seen, n.Certificates
	s.nodes[n.ID] = row
	return row.Beat, row.Drain, nil
}

func (s *store) ReadCluster(context.Context) (partition.Reading, error) {
	if err := s.begin(); err != nil {
		return partition.Reading{}, err
	}
	defer s.mu.Unlock()
	return partition.Reading{
		Nodes:      slices.Collect(maps.Values(s.nodes)),
		Partitions: slices.Collect(maps.Values(s.partitions)),
		Last:       s.last,
	}, nil
}

func (s *store) RemoveNode(_ context.Context, id string, beat int64) (bool, error) {
	if err := s.begin(); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if row, ok := s.nodes[id]; ok && row.Beat != beat {
		return false, nil
	}
	delete(s.nodes, id)
	return true, nil
}

func (s *store) Claim(_ context.Context, id string, list []partition.Row) ([]partition.Row, error) {
	return s.take(id, list, func(row partition.Row) bool {
		_, held := s.nodes[row.Holder]
		return !held
	})
}

func (s *store) Hand(_ context.Context, to string, list []partition.Row) ([]partition.Row, error) {
	holders := map[string]string{}
	for _, row := range list {
		holders[row.Name] = row.Holder
	}
	return s.take(to, list, func(row partition.Row) bool { return row.Holder == holders[row.Name] })
}

// take makes a node the holder of those of list that have their epoch still and are free.
func (s *store) take(id string, list []partition.Row, free func(partition.Row) bool) (
	[]partition.Row, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var taken []partition.Row
	if _, ok := s.nodes[id]; !ok {
		return nil, nil
	}
	for _, want := range list {
		row := s.partitions[want.Name]
		if row.Epoch == want.Epoch && free(row) {
			row.Holder, row.Epoch = id, row.Epoch+1
			s.partitions[want.Name] = row
			taken = append(taken, row)
		}
	}
	return taken, nil
}

func (s *store) Leave(_ context.Context, id string) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	delete(s.nodes, id)
	return nil
}

// remove deletes the row of a node.
func (r *rows) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.nodes, id)
}

// keepAlive makes a row beat until the returned function is called.
func (r *rows) keepAlive(id string) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Second):
				r.mu.Lock()
				if n, ok := r.nodes[id]; ok {
					n.Beat++
					r.nodes[id] = n
				}
				r.mu.Unlock()
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
}
