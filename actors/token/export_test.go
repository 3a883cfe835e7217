package token

// FillSigner takes all room for signatures that a client may have, until the result is called.
func (s *Service) FillSigner(client string) (release func()) {
	taken := 0
	for s.signer.take(client) {
		taken++
	}
	return func() {
		for range taken {
			s.signer.giveBack(client)
		}
	}
}

// Reserved returns how many signatures are reserved.
func (s *Service) Reserved() int {
	s.signer.mu.Lock()
	defer s.signer.mu.Unlock()
	return s.signer.reserved + len(s.signer.byClient)
}
