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

// starts is how often the start is measured.
const starts = 5

// start starts a server, and returns it with how long it took until it was ready.
func start(ctx context.Context, c config, database string) (*loadtest.Local, time.Duration, error) {
	local, err := loadtest.StartLocal(ctx, c.gatehouse, database)
	if err != nil {
		return nil, 0, err
	}
	for {
		_, err := ask(ctx, http.MethodGet, local.Admin+"/readyz", "")
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

// ask sends a request that has to be answered with 200, and returns the answer.
func ask(ctx context.Context, method, url, body string) ([]byte, error) {
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
		err = fmt.Errorf("%s answered %d", url, response.StatusCode)
	}
	return text, err
}

// resident returns the server's resident memory in bytes.
func resident(ctx context.Context, admin string) (float64, error) {
	text, err := ask(ctx, http.MethodGet, admin+"/metrics", "")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "process_resident_memory_bytes "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, errors.New("the server does not tell its memory")
}

// use lets every token ask for its profile once.
func use(base string, tokens []string) error {
	client := &fasthttp.Client{MaxConnsPerHost: connections, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	var errs [connections]error
	var asked sync.WaitGroup
	for i, mine := range slices.Collect(slices.Chunk(tokens, (len(tokens)+connections-1)/connections)) {
		asked.Go(func() {
			var request fasthttp.Request
			var response fasthttp.Response
			request.SetRequestURI(base + "/api/user")
			for _, token := range mine {
				request.Header.Set("Authorization", "Bearer "+token)
				if errs[i] = client.Do(&request, &response); errs[i] == nil && response.StatusCode() != http.StatusOK {
					errs[i] = fmt.Errorf("a profile was answered with %d", response.StatusCode())
				}
				if errs[i] != nil {
					return
				}
			}
		})
	}
	asked.Wait()
	return errors.Join(errs[:]...)
}
