package stacktest_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

func TestMain(m *testing.M) {
	// Without a budget each query has a holder, which asks the upstream by itself.
	const (
		breaker = "each node has a breaker of its own"
		pause   = "each node pauses by itself after a 429"
		batch   = "the queries of a bulk request have several holders, and batches of their own"
		files   = "each node caches results of the offline files by itself"
		process = "one process and its output"
	)
	os.Exit(stacktest.Run(m, map[string]string{
		"TestBadElementFailsOnlyItsQuery":     batch,
		"TestBreakerSendsOneProbe":            breaker,
		"TestFileResultsExpire":               files,
		"TestFilesRespondWhenUpstreamForbids": breaker,
		"TestFilesRespondWhileBreakerIsOpen":  breaker,
		"TestMixedBulk/breaker_open":          breaker,
		"TestOutage":                          breaker,
		"TestProcessPrintsNoQueries":          process,
		"TestResponseForAnotherQuery":         breaker,
		"TestShortBatch":                      batch,
		"TestThrottled":                       pause,
		"TestThrottledWithoutHeaders/pro":     pause,
	}))
}
