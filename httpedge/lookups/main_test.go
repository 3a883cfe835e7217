package lookups_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

func TestMain(m *testing.M) {
	os.Exit(stacktest.Run(m, map[string]string{
		"TestKeyNamesTheCaller":            "--geo-limit, which each node counts",
		"TestKeysAreReadAgain":             "a file that one server reads again",
		"TestLookupInFiles":                "the metrics of one server",
		"TestStreamIsLoggedAtItsEnd":       "the metrics of one server",
		"TestStreamLineComesWhenItIsKnown": "a node looks up what another one asks for, and replies once",
		"TestStreamRoomOfAnAddress":        "the room for streams of one server",
	}))
}
