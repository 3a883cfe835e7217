package token

import (
	"encoding/binary"
	"net/netip"
	"time"

	"gatehouse/actors/oauth"
)

// FillSigner takes all room for signatures that a client may have, until the result is called.
func (s *Service) FillSigner(c *oauth.Client) (release func()) {
	by := payerOfClient(c, netip.Addr{})
	taken := 0
	for s.signer.rooms[by.Class].Take(1, by.Key) {
		taken++
	}
	return func() { s.signer.rooms[by.Class].Give(taken, by.Key) }
}

// Reserved returns how many signatures are reserved.
func (s *Service) Reserved() int {
	all := 0
	for class := range s.signer.rooms {
		signatures, clients := s.signer.rooms[class].Used()
		all += signatures + clients
	}
	return all
}

// EndTokens ends n tokens of a client, which expire in an hour, without the store.
func (s *Service) EndTokens(client string, n int) {
	for i := range n {
		end := oauth.End{ClientID: client, Expires: time.Now().Add(time.Hour)}
		binary.BigEndian.PutUint32(end.Token[:], uint32(i))
		s.ended.add(&end)
	}
}
