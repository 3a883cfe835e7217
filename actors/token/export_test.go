package token

import (
	"encoding/binary"
	"time"

	"gatehouse/actors/oauth"
)

// FillSigner takes all room for signatures that a client may have, until the result is called.
func (s *Service) FillSigner(client string) (release func()) {
	taken := 0
	for s.signer.reserved.Take(1, client) {
		taken++
	}
	return func() {
		s.signer.reserved.Give(taken, client)
	}
}

// Reserved returns how many signatures are reserved.
func (s *Service) Reserved() int {
	signatures, clients := s.signer.reserved.Used()
	return signatures + clients
}

// EndTokens ends n tokens of a client, which expire in an hour, without the store.
func (s *Service) EndTokens(client string, n int) {
	for i := range n {
		end := oauth.End{ClientID: client, Expires: time.Now().Add(time.Hour)}
		binary.BigEndian.PutUint32(end.Token[:], uint32(i))
		s.ended.add(&end)
	}
}
