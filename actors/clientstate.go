package actors

import (
	"sync/atomic"

	"gatehouse/actors/oauth"
)

// clientState is what everybody shares who has to do with one client: its record, which a change replaces as a whole. A
// deleted client leaves a disabled record behind, so that client is never nil.
type clientState struct {
	client atomic.Pointer[oauth.Client]
}
