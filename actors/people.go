package actors

import "gatehouse/actors/oauth"

// people is what sign-ins share.
type people struct{}

func newPeople(keys oauth.Keys) *people { return &people{} }
