package cluster_test

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"gatehouse/providers/cluster"
)

// FuzzInspect looks for a message that passes, and that the library cannot take.
func FuzzInspect(f *testing.F) {
	data, err := proto.Marshal(wrapperspb.Bytes([]byte("frame")))
	if err != nil {
		f.Fatal(err)
	}
	whole, err := proto.Marshal(&remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{
		MessageBatch: &remote.MessageBatch{
			TypeNames: []string{cluster.FrameType},
			Targets:   []*actor.PID{actor.NewPID("127.0.0.1:7946", cluster.TargetName)},
			Envelopes: []*remote.MessageEnvelope{{MessageData: data}},
		}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, true)
	f.Add([]byte{0x12, 0x02, 0x12, 0x00}, false)
	f.Fuzz(func(t *testing.T, b []byte, greeted bool) {
		m, err, ok := cluster.Inspect(b, greeted)
		if !ok || err != nil {
			return
		}
		if !greeted {
			if m.GetConnectRequest().GetServerConnection() == nil {
				t.Fatal("got a stream without a greeting")
			}
			return
		}
		// What the library does with the message.
		batch := m.GetMessageBatch()
		for _, e := range batch.Envelopes {
			if e.Sender != 0 || e.MessageHeader != nil {
				t.Fatal("got a sender or a header")
			}
			if target := batch.Targets[e.Target]; target.Id != cluster.TargetName ||
				target.Address != "127.0.0.1:7946" {
				t.Fatalf("got a message to %v", target)
			}
			got, err := remote.Deserialize(e.MessageData, batch.TypeNames[e.TypeId], e.SerializerId)
			if err != nil {
				continue // the stream ends
			}
			if _, ok := got.(*wrapperspb.BytesValue); !ok {
				t.Fatalf("got a %T", got)
			}
		}
	})
}
