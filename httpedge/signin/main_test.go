package signin_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// The people of the tests.
const (
	rosa = "rosa@example.com"
	kofi = "kofi@example.com"
	ada  = "ada@example.com"

	ida      = "Ida@example.com"
	idaPhone = "+14155550123"
)

func TestMain(m *testing.M) {
	const itself = "each node does so by itself"
	os.Exit(stacktest.Run(m, map[string]string{
		"TestAuthorizeServerErrors":           "the stores of one server, which it makes fail",
		"TestDoubleClickIsReplayed":           itself,
		"TestDoubleClickOnTheCodeSignsInOnce": itself,
		"TestEachActionIsRecorded":            "the quota of a client, which each node counts",
		"TestFailedRequestsAreLoggedOnce":     "the lines that one server logs",
		"TestInvitationByProvider/operators":  "it writes in SQLite's words",
		"TestLogoOutlivesApply":               itself, // keep pictures
		"TestOutdatedDocumentDoesNotComeBack": itself, // keep documents
		"TestProviderThatIsAway":              itself, // notice that it is back
	}))
}
