package oauth

// Payer is who has a document of a client fetched.
type Payer struct {
	// ID names a user, a network or a client. Few fetches of one payer are under way at a time.
	ID string
	// Trusted is set for a client that an operator has registered. Others leave room for these.
	Trusted bool
	// Charge is called before a request is sent, and its error is returned; nil = nothing is counted.
	Charge func() error
}
