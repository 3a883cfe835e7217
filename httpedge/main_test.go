package httpedge_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

const rosa = "rosa@example.com"

func TestMain(m *testing.M) {
	const (
		allocations = "what one server allocates"
		connections = "the connections of one server"
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
		"TestHalfSentBodiesHoldLittle":               allocations,
		"TestMetrics":                                metrics,
		"TestNotReadyWithoutDatabase":                log,
		"TestPanicEndsOneRequest":                    "the handler of one server",
		"TestRefusalsDoNotWaitForTheBody":            connections,
		"TestServerSurvivesFileDescriptorExhaustion": listener,
		"TestShutdownEndsAtItsDeadline":              shutdown,
		"TestShutdownWaitsForARequestThatArrives":    shutdown,
		"TestShutdownWaitsForRequests":               shutdown,
		"TestSlowClientsTimeOut":                     connections,
		"TestStrictTransportSecurity":                listener,
		"TestTLS":                                    listener,
		"TestTLSWithBadClients":                      listener,
		"TestUnixSocketPeersAreLocal":                listener,
		"TestUntrustedForwardingHeadersWarn":         log,
	}))
}
