package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

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
