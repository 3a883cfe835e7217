package nodes

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Load is a number of requests to /api/user, spread evenly over tokens and time.
type Load struct {
	Tokens  []Token
	Each    int           // requests of each token
	Length  time.Duration // in which they begin; they may take longer
	Workers int
}

// sender passes a request on; it returns the name of the node that responded.
type sender interface {
	Do(*fasthttp.Request, *fasthttp.Response) (string, error)
}

// Run sends all requests through to, and calls note for each response from many goroutines. It ends
// early when ctx ends.
func (l Load) Run(ctx context.Context, to sender, note func(Response)) {
	total := int64(l.Each) * int64(len(l.Tokens))
	began := time.Now()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range l.Workers {
		workers.Go(func() {
			a := newAsker(to)
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= total {
					return
				}
				due := began.Add(time.Duration(float64(l.Length) * float64(i) / float64(total)))
				time.Sleep(time.Until(due))
				n := int(i % int64(len(l.Tokens)))
				r := a.ask(l.Tokens[n].Text)
				r.Token = n
				note(r)
			}
		})
	}
	workers.Wait()
}

// asker sends the requests of one goroutine.
type asker struct {
	to       sender
	request  fasthttp.Request
	response fasthttp.Response
}

func newAsker(to sender) *asker { return &asker{to: to} }

// ask requests the profile of a token.
func (a *asker) ask(token string) Response {
	a.request.Reset()
	a.request.Header.SetMethod(http.MethodGet)
	a.request.SetRequestURI("http://gatehouse.example/api/user")
	a.request.Header.Set("Authorization", "Bearer "+token)
	r := Response{Began: time.Now()}
	a.response.Reset()
	node, err := a.to.Do(&a.request, &a.response)
	r.Took = time.Since(r.Began)
	if err != nil {
		return r
	}
	r.Status, r.Node = a.response.StatusCode(), node
	r.Reset, _ = strconv.ParseInt(string(a.response.Header.Peek("X-RateLimit-Reset")), 10, 64)
	return r
}

// direct sends to one node.
type direct struct {
	name   string
	client *fasthttp.HostClient
}

// newDirect returns a sender to n alone.
func newDirect(n *Node, timeout time.Duration) *direct {
	return &direct{n.Name, &fasthttp.HostClient{Addr: n.ip + ":" + publicPort, MaxConns: 4096,
		MaxIdemponentCallAttempts: 1, ReadTimeout: timeout, WriteTimeout: timeout}}
}

// Do implements sender.
func (d *direct) Do(request *fasthttp.Request, response *fasthttp.Response) (string, error) {
	return d.name, d.client.Do(request, response)
}
