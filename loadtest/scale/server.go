package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/loadtest"
)

// starts is the number of measured starts.
const starts = 5

// start starts a server and returns it with the time until it was ready.
func start(ctx context.Context, c config, database string) (*loadtest.Local, time.Duration, error) {
	local, err := loadtest.StartLocal(ctx, c.gatehouse, database)
	if err != nil {
		return nil, 0, err
	}
	for {
		_, err := do(ctx, http.MethodGet, local.Admin+"/readyz", "")
		took := time.Since(local.Began)
		if err == nil {
			return local, took, nil
		}
		if took > 30*time.Second {
			return nil, 0, errors.Join(fmt.Errorf("wait until the server is ready: %w", err), local.Stop())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// do sends a request and returns the response's body. A status other than 200 is an error.
func do(ctx context.Context, method, url, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s responded with %d", url, response.StatusCode)
	}
	return text, err
}

// resident returns the server's resident memory in bytes.
func resident(ctx context.Context, admin string) (float64, error) {
	text, err := do(ctx, http.MethodGet, admin+"/metrics", "")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "process_resident_memory_bytes "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.New("the server's metrics lack process_resident_memory_bytes")
}

// use requests the profile of every token once.
func use(base string, tokens []string) error {
	client := &fasthttp.Client{MaxConnsPerHost: connections, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	var errs [connections]error
	var workers sync.WaitGroup
	for i, mine := range slices.Collect(slices.Chunk(tokens,
		(len(tokens)+connections-1)/connections)) {
		workers.Go(func() {
			var request fasthttp.Request
			var response fasthttp.Response
			request.SetRequestURI(base + "/api/user")
			for _, token := range mine {
				request.Header.Set("Authorization", "Bearer "+token)
				if errs[i] = client.Do(&request, &response); errs[i] == nil &&
					response.StatusCode() != http.StatusOK {
					errs[i] = fmt.Errorf("got status %d for a profile, want 200", response.StatusCode())
				}
				if errs[i] != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	return errors.Join(errs[:]...)
}
