package edgetest_test

import (
	"os"
	"testing"

	"gatehouse/httpedge/edgetest"
)

func TestMain(m *testing.M) {
	const virtual, process = "virtual time", "one process and its output"
	os.Exit(edgetest.Run(m, map[string]string{
		"TestBadElementFailsOnlyItsQuery":            virtual,
		"TestBreakerSendsOneProbe":                   virtual,
		"TestCachedResultsExpire":                    virtual,
		"TestColdBulkNeedsAtMostTwoUpstreamRequests": virtual,
		"TestConcurrentLookupsShareOneUpstreamQuery": virtual,
		"TestDomainsAreNotBatched":                   virtual,
		"TestFileResultsExpire":                      virtual,
		"TestFilesRespondInTimeWhenUpstreamHangs":    virtual,
		"TestFilesRespondOnEmptyBudget":              virtual,
		"TestFilesRespondWhenUpstreamForbids":        virtual,
		"TestFilesRespondWhileBreakerIsOpen":         virtual,
		"TestLookupsEndAtTheDeadline":                virtual,
		"TestMixedBulk":                              virtual,
		"TestMixedBulkUnderOverload":                 virtual,
		"TestNoRequestOnEmptyBudget":                 virtual,
		"TestOutage":                                 virtual,
		"TestProcessPrintsNoQueries":                 process,
		"TestResponseForAnotherQuery":                virtual,
		"TestRestartOnEmptyBudget":                   virtual,
		"TestRetryAfterIsTimeUntilProbe":             virtual,
		"TestShortBatch":                             virtual,
		"TestSteadyMissesAreServed":                  virtual,
		"TestThrottled":                              virtual,
		"TestThrottledWithoutHeaders":                virtual,
	}))
}
