package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"

	"gatehouse/loadtest/lab"
)

// The ports of every node; each has an IP address of its own. The balancer has publicPort too.
const (
	publicPort  = "8080"
	adminPort   = "8081"
	clusterPort = "7946"
)

// startTimeout only keeps a start from hanging.
const startTimeout = 2 * time.Minute

// Node is one gatehouse process with its links. Its methods are for one goroutine at a time.
type Node struct {
	Name     string
	Program  string // the gatehouse program of the next start
	Base     string // URL of its public address
	Admin    string // URL of its admin address
	Database *Link  // to PostgreSQL
	Peers    *Link  // from the other nodes to its cluster listener

	cluster *Cluster
	index   int
	ip      string

	mu      sync.Mutex
	process *lab.Process  // nil before the first start
	used    time.Duration // CPU time of the processes before
}

func (c *Cluster) newNode(i int) (n *Node, err error) {
	n = &Node{Name: fmt.Sprintf("node-%d", i+1), Program: c.config.Program, cluster: c, index: i, ip: c.ip(i + 1)}
	n.Base = "http://" + net.JoinHostPort(n.ip, publicPort)
	n.Admin = "http://" + net.JoinHostPort(n.ip, adminPort)
	if n.Database, err = NewLink(c.postgres.Address(), nil); err != nil {
		return nil, err
	}
	n.Peers, err = NewLink(net.JoinHostPort(n.ip, clusterPort), c.owner)
	if err != nil {
		return nil, errors.Join(err, n.Database.Close())
	}
	return n, nil
}

// owner returns the name of the node whose process has that address; "" = none.
func (c *Cluster) owner(local net.Addr) string {
	for _, n := range c.Nodes() {
		if p := n.current(); p != nil && owns(p.PID(), local) {
			return n.Name
		}
	}
	return ""
}

func (n *Node) current() *lab.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

var serving = regexp.MustCompile(`"msg":"serving"`)

// Start starts the process and waits until it is ready.
func (n *Node) Start(ctx context.Context) error {
	if err := n.Launch(ctx); err != nil {
		return err
	}
	return n.AwaitReady(ctx)
}

// Launch starts the process and waits until it listens.
func (n *Node) Launch(ctx context.Context) error {
	args := []string{"serve", "--listen", net.JoinHostPort(n.ip, publicPort), "--admin-listen",
		net.JoinHostPort(n.ip, adminPort), "--log-format", "json", "--log-level", "info", "--ptr", "off",
		"--max-connections-per-address", "65536",
		// Else a request is counted now and then on a connection that just closes, and again when
		// the balancer repeats it.
		"--drain-delay", (2*probeInterval + 100*time.Millisecond).String()}
	if n.cluster.config.Cluster {
		args = append(args, "--cluster-listen", net.JoinHostPort(n.ip, clusterPort),
			"--cluster-advertise", n.Peers.Address, "--cluster-name", n.Name)
	}
	var each func(string)
	if lines := n.cluster.config.Lines; lines != nil {
		each = func(line string) { lines(n.index, line) }
	}
	command := exec.Command(n.Program, append(args, n.cluster.config.Flags...)...)
	command.Env = append(os.Environ(), n.cluster.environment(n.Database.Address)...)
	p, err := lab.Start(command, each)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if n.process != nil {
		used, failed := n.process.CPU()
		n.used, err = n.used+used, failed
	}
	n.process = p
	n.mu.Unlock()
	if _, failed := p.Await(ctx, serving); err != nil || failed != nil {
		return fmt.Errorf("start %s: %w", n.Name, errors.Join(err, failed))
	}
	return nil
}

// AwaitReady waits until /readyz responds with 200.
func (n *Node) AwaitReady(ctx context.Context) error {
	if err := (&lab.Server{Process: n.current(), Admin: n.Admin}).AwaitReady(ctx); err != nil {
		return fmt.Errorf("wait for %s: %w", n.Name, err)
	}
	return nil
}

// isReady reports whether /readyz responds with 200.
func isReady(ctx context.Context, client *http.Client, admin string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// Stop sends SIGTERM and waits for the end, which must be a good one.
func (n *Node) Stop() error {
	p := n.current()
	if p == nil {
		return nil
	}
	if err := errors.Join(p.Signal(syscall.SIGCONT), p.Stop()); err != nil {
		return fmt.Errorf("stop %s: %w", n.Name, err)
	}
	return nil
}

// Crashed returns an error if the process has ended by itself, without Stop or Kill.
func (n *Node) Crashed() error {
	if p := n.current(); p != nil {
		if err := p.Crashed(); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// Kill ends the process with SIGKILL.
func (n *Node) Kill() error { return n.current().Kill() }

// Freeze stops the process with SIGSTOP.
func (n *Node) Freeze() error { return n.current().Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process run on.
func (n *Node) Thaw() error { return n.current().Signal(syscall.SIGCONT) }

// Memory returns the resident memory in bytes.
func (n *Node) Memory() (int64, error) { return n.current().Memory() }

// CPU returns the CPU time of the node, user and system, over its restarts.
func (n *Node) CPU() (time.Duration, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	used, err := n.process.CPU()
	return n.used + used, err
}

// close ends the process at once, if it runs, and the links.
func (n *Node) close() error {
	var err error
	if p := n.current(); p != nil {
		err = p.Kill()
	}
	return errors.Join(err, n.Database.Close(), n.Peers.Close())
}
