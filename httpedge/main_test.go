package httpedge_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

func TestMain(m *testing.M) {
	const (
		allocations = "what one server allocates"
		connections = "the connections of one server"
		itself      = "each node does so by itself"
		listener    = "a listener that no balancer stands in front of"
		log         = "the lines that one server logs"
		metrics     = "the metrics of one server"
		shutdown    = "one server stops"
	)
	os.Exit(stacktest.Run(m, map[string]string{
		"TestAdmittedProfileAllocatesNothing":        allocations,
		"TestCacheHitAllocatesNothing":               allocations,
		"TestCachedBulkAllocatesLittle":              allocations,
		"TestCachedDomainAllocatesNothing":           allocations,
		"TestConnectionLimit":                        connections,
		"TestConnectionLimitOfAnAddress":             connections,
		"TestDoubleClickIsReplayed":                  itself,
		"TestDoubleClickOnTheCodeSignsInOnce":        itself,
		"TestEachActionIsRecorded":                   "the quota of a client, which each node counts",
		"TestFailedRequestsAreLoggedOnce":            log,
		"TestHalfSentBodiesHoldLittle":               allocations,
		"TestKeyNamesTheCaller":                      "--geo-limit, which each node counts",
		"TestKeysAreReadAgain":                       "a file that one server reads again",
		"TestLookupInFiles":                          metrics,
		"TestLookupWithTheSimulator":                 "one batch for a bulk request",
		"TestMetrics":                                metrics,
		"TestNotReadyWithoutDatabase":                log,
		"TestOperatorRotatesKeys":                    "a key that no other process needs, used at once",
		"TestPanicEndsOneRequest":                    "the handler of one server",
		"TestQuotaOfClient":                          "the quota of a client, which each node counts",
		"TestRefusalsDoNotWaitForTheBody":            connections,
		"TestRegisteredClientSignsIn":                "the sweeper's ends, which nobody waits for",
		"TestRotationReachesRelyingParty":            "a key that no other process needs, used at once",
		"TestServerSurvivesFileDescriptorExhaustion": listener,
		"TestShutdownEndsAtItsDeadline":              shutdown,
		"TestShutdownWaitsForARequestThatArrives":    shutdown,
		"TestShutdownWaitsForRequests":               shutdown,
		"TestSlowClientsTimeOut":                     connections,
		"TestStrictTransportSecurity":                listener,
		"TestStreamIsLoggedAtItsEnd":                 metrics,
		"TestStreamRoomOfAnAddress":                  "the room for streams of one server",
		"TestTLS":                                    listener,
		"TestTLSWithBadClients":                      listener,
		"TestUnixSocketPeersAreLocal":                listener,
		"TestUntrustedForwardingHeadersWarn":         log,
	}))
}
