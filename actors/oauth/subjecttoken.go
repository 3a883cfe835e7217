package oauth

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// MostExchanges is how many exchanges an access token may come from, one after the other.
const MostExchanges = 4

// SubjectToken is what an access token stores of the subject token of its exchange (RFC 8693).
// Whatever ends the subject token ends the access token as well.
type SubjectToken struct {
	ID       TokenID
	ClientID string        // that it was issued to
	Epoch    int64         // of that client, as in the token
	Resource uint16        // that the exchange began at
	Subject  *SubjectToken // of its own exchange; nil = it was not exchanged
}

// Exchanges returns how many exchanges t comes from.
func (t *AccessToken) Exchanges() (n int) {
	for subject := t.Subject; subject != nil; subject = subject.Subject {
		n++
	}
	return n
}

// Actors returns the ids of the clients that use t in the name of its user, the current one first
// (RFC 8693 section 4.1); nil = it was not exchanged. The client that the user has allowed is not
// among them.
func (t *AccessToken) Actors() (ids []string) {
	client := t.ClientID
	for subject := t.Subject; subject != nil; subject = subject.Subject {
		ids, client = append(ids, client), subject.ClientID
	}
	return ids
}

// A SubjectToken in a record begins with a byte: the length of the client ID, which is 0 for a UUID,
// and the bit hasSubject if another SubjectToken follows.
const hasSubject = 1 << 7

func (s *SubjectToken) append(dst []byte) []byte {
	client, isUUID := parseUUID(s.ClientID)
	more := flag(s.Subject != nil, hasSubject)
	if isUUID {
		dst = append(append(dst, more), client[:]...)
	} else {
		dst = append(append(dst, more|byte(len(s.ClientID))), s.ClientID...)
	}
	dst = binary.AppendUvarint(append(dst, s.ID[:]...), uint64(s.Epoch))
	return binary.AppendUvarint(dst, uint64(s.Resource))
}

// subjects reads what append has written, until a SubjectToken says that none follows.
func (r *recordReader) subjects() *SubjectToken {
	var first *SubjectToken
	next := &first
	for more := byte(hasSubject); more != 0; {
		s, head := new(SubjectToken), r.bytes(1)[0]
		if more = head & hasSubject; head&^hasSubject == 0 {
			s.ClientID = uuid.UUID(r.bytes(16)).String()
		} else {
			s.ClientID = string(r.bytes(int(head &^ hasSubject)))
		}
		s.ID = TokenID(r.bytes(len(s.ID)))
		s.Epoch, s.Resource = r.number(), uint16(r.number())
		*next, next = s, &s.Subject
	}
	return first
}
