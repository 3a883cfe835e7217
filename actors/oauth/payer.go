package oauth

import "net/netip"

// Payer is who has a document of a client fetched.
type Payer struct {
	// ID names a user, a network or a client. Few fetches of one payer are under way at a time.
	ID string
	// Network is where the request came from; the zero Prefix = unknown, which is a network too.
	// Networks have turns. When too many wait, the network that has most of them makes room.
	Network netip.Prefix
	// Class says with whom the payer shares turns and slots. Other classes do not delay it.
	Class PayerClass
	// Charge is called before a request is sent, and its error is returned; nil = nothing is counted.
	Charge func() error
}

// PayerClass is how far a Payer is trusted. The zero value is Strangers.
type PayerClass int

// The classes.
const (
	Strangers PayerClass = iota // for clients that nobody has consented to
	People                      // who have signed in, and clients that a person has consented to
	Operators                   // clients that an operator has registered
)
