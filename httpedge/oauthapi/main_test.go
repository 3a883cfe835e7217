package oauthapi_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

const rosa = "rosa@example.com"

func TestMain(m *testing.M) {
	os.Exit(stacktest.Run(m, map[string]string{
		"TestFailuresOfClients":           "the clients that one server knows",
		"TestQuotaOfClient":               "the quota of a client, which each node counts",
		"TestRegisteredClientSignsIn":     "the sweeper's ends, which nobody waits for",
		"TestRegistrationFlood":           "the room for clients without a consent, of which each node takes 1 % at once",
		"TestTokensForResources":          "a change of a resource, which other nodes notice within a second",
		"TestRotationReachesRelyingParty": "a key that no other process needs, used at once",
	}))
}
