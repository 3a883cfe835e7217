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
		alone       = "a service without accounts, which nodes have"
		listener    = "a listener that no balancer stands in front of"
		log         = "the lines that one server logs"
		metrics     = "the metrics of one server"
		shutdown    = "one server stops"
	)
	os.Exit(stacktest.Run(m, map[string]string{
		"TestAdmittedProfileAllocatesNothing":        allocations,
		"TestBrandWithoutSettings":                   alone,
		"TestBulkInFilesAllocatesLittle":             allocations,
		"TestCacheHitAllocatesNothing":               allocations,
		"TestCachedBulkAllocatesLittle":              allocations,
		"TestCachedDomainAllocatesNothing":           allocations,
		"TestConnectionLimit":                        connections,
		"TestConnectionLimitOfAnAddress":             connections,
		"TestEndOfCertificate":                       listener,
		"TestHalfSentBodiesHoldLittle":               allocations,
		"TestHome":                                   alone,
		"TestHomeIsLimited":                          "--geo-limit, which each node counts",
		"TestHomeLooksUp":                            alone,
		"TestMetrics":                                metrics,
		"TestNotReadyWithoutDatabase":                log,
		"TestPanicEndsOneRequest":                    "the handler of one server",
		"TestRefusalsDoNotWaitForTheBody":            connections,
		"TestServerSurvivesFileDescriptorExhaustion": listener,
		"TestShutdownEndsAtItsDeadline":              shutdown,
		"TestShutdownWaitsForARequestThatArrives":    shutdown,
		"TestShutdownWaitsForRequests":               shutdown,
		"TestSlowClientsTimeOut":                     connections,
		"TestStreamsHoldABoundedMemory":              "the room for streams of one server",
		"TestStreamToNobody":                         "what one server hands to the kernel",
		"TestStrictTransportSecurity":                listener,
		"TestTLS":                                    listener,
		"TestTLSWithBadClients":                      listener,
		"TestUnixSocketPeersAreLocal":                listener,
		"TestUntrustedForwardingHeadersWarn":         log,
	}))
}
