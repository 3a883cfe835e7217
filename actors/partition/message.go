package partition

import "errors"

// Version is the newest version of frames that this program understands. A frame has the least
// version that all members understand. A new kind of message is sent one release after it is
// understood.
//
// Version 2 has names and allowances in asks of access tokens, and AskNode.
const Version = 2

// Kind says what a Message is.
type Kind byte

// The kinds of messages.
const (
	Hello   Kind = iota + 1 // a node that joins asks for Welcome
	Welcome                 // the reply: frames pass in both directions
	Move                    // the holder hands over the counts of partitions
	Moved                   // the reply: they have arrived, or are not wanted
	Taken                   // partitions have a new holder
	Changed                 // a change is committed: apply it and reply Seen
	Seen                    // the sender has applied all changes up to Number

	Ask         // a question to the holder of a partition
	Answer      // its reply
	Cast        // something for all nodes, without a reply
	Unsupported // the reply to an unknown kind
	AskNode     // a question to a node, whatever it holds; the reply is an Answer
)

// Message is what one node tells another. Only the fields that the kind needs are set.
type Message struct {
	Kind   Kind
	Number int64 // of the move, the change, or the ask

	Rows    []Row   // Move: as they are; Taken: with the new holder and epochs
	Claimed []int64 // Move: Part.Claimed of each row
	Counts  []byte  // Move: what the services count, as they wrote it
	Piece   int     // Move: position of the message in its move, from 0
	More    bool    // Move: further messages of the same move follow
	Refused bool    // Moved: the partitions are not wanted

	Service   byte // Ask, AskNode, Cast: who gets Body
	Partition int  // Ask, AskNode: index; the asker's and the holder's are the same
	Epoch     int64
	Status    Status // Answer
	Body      []byte // Ask, AskNode, Answer, Cast

	From string // ID of the sender of an Ask or AskNode that has arrived; not sent
}

// Status is the outcome of an ask.
type Status byte

// The outcomes.
const (
	Done      Status = iota // Body is the reply
	Elsewhere               // the node does not hold the partition, or is handing it over
	Busy                    // the holder is overloaded
)

// Frame is what is sent at once. A node has one frame with asks in flight to each other node.
type Frame struct {
	Version  int
	From     string // ID of the sender
	To       string // ID of the receiver: a process that restarts at the same address is another
	Number   int64  // of the frame, by sender; 0 = it has no asks, and needs no reply
	Reply    int64  // the Number of the frame whose asks were handled; 0 = none
	Messages []Message
}

// The services that get asks and casts.
const (
	ServiceTokens    byte = 1 // counts requests
	ServiceThrottles byte = 2 // counts failed attempts
	ServiceLookups   byte = 3 // looks up addresses and domains
)

// Why an ask got no reply.
var (
	// ErrHere says that this node holds the partition and decides itself.
	ErrHere = errors.New("this node holds the partition")
	// ErrUnreachable says that nobody who decides can be asked now.
	ErrUnreachable = errors.New("the holder of the partition cannot be reached")
	// ErrBusy says that the holder, or the way to it, is overloaded.
	ErrBusy = errors.New("the holder of the partition is overloaded")
)
