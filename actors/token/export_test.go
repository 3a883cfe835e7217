package token

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
