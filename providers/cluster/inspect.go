package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	// targetName is the only name that others may send to.
	targetName = "node"
	// frameType is the only type of messages that others may send.
	frameType = "google.protobuf.BytesValue"
	// receiveMethod is the only method that others may call.
	receiveMethod = "/remote.Remoting/Receive"
	// certificateHeader tells the receiver of a frame by which certificate it came.
	certificateHeader = "certificate"
)

// What others must not send.
var (
	errMethod   = errors.New("the method is not for nodes")
	errGreeting = errors.New("want a connect request of a server first, and none later")
	errShape    = errors.New("want one frame for this node in a message")
	errStranger = errors.New("the certificate is no longer that of a node")
)

// inspect returns an error unless the library may get m. greeted says that the stream's first
// message has been accepted. self is where frames go.
//
// The library trusts what it reads: it ends the process at unknown types and wrong indexes, sends
// to any actor, and connects to any address.
func inspect(m *remote.RemoteMessage, greeted bool, self *actor.PID) error {
	if !greeted {
		if m.GetConnectRequest().GetServerConnection() == nil {
			return errGreeting
		}
		return nil
	}
	if m.GetMessageBatch() == nil {
		return errGreeting
	}
	b := m.GetMessageBatch()
	if len(b.TypeNames) != 1 || len(b.Targets) != 1 || len(b.Senders) != 0 || len(b.Envelopes) != 1 {
		return errShape
	}
	e, target := b.Envelopes[0], b.Targets[0]
	switch {
	case e == nil || target == nil, b.TypeNames[0] != frameType,
		target.Id != self.Id, target.Address != self.Address, target.RequestId != 0,
		e.TypeId != 0, e.Target != 0, e.Sender != 0, e.SerializerId != 0,
		e.TargetRequestId != 0, e.SenderRequestId != 0, e.MessageHeader != nil:
		return errShape
	}
	return nil
}

// accept is the interceptor of streams from others.
func (t *transport) accept(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
	handler grpc.StreamHandler) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			t.failed(recovered)
			err = status.Error(codes.Internal, "panic")
		}
	}()
	if info.FullMethod != receiveMethod {
		t.refused(errMethod)
		return status.Error(codes.Unimplemented, errMethod.Error())
	}
	certificate := ""
	if p, ok := peer.FromContext(stream.Context()); ok {
		if i, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(i.State.PeerCertificates) == 1 {
			certificate = hashOf(i.State.PeerCertificates[0].Raw)
		}
	}
	return handler(service, &incoming{ServerStream: stream, t: t, certificate: certificate})
}

// refuseUnary is the interceptor of all other calls.
func (t *transport) refuseUnary(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (
	any, error) {
	t.refused(errMethod)
	return nil, status.Error(codes.Unimplemented, errMethod.Error())
}

// incoming is a stream from another node. The library gets only what inspect has passed.
type incoming struct {
	grpc.ServerStream
	t           *transport
	certificate string
	greeted     bool
}

// RecvMsg implements grpc.ServerStream.
func (s *incoming) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	message, ok := m.(*remote.RemoteMessage)
	if !ok {
		return status.Errorf(codes.Internal, "got a %T", m)
	}
	if err := inspect(message, s.greeted, s.t.self); err != nil {
		s.t.refused(err)
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if !s.t.speaks(s.certificate) {
		s.t.refused(errStranger)
		return status.Error(codes.PermissionDenied, errStranger.Error())
	}
	if s.greeted {
		batch := message.GetMessageBatch()
		batch.Targets[0] = s.t.self
		batch.Envelopes[0].MessageHeader = &remote.MessageHeader{
			HeaderData: map[string]string{certificateHeader: s.certificate},
		}
	}
	s.greeted = true
	return nil
}

// receiver is the process that frames are sent to. It handles them on the goroutine of the stream,
// so that a node that sends too much is slowed down.
type receiver struct{ t *transport }

// SendUserMessage implements actor.Process.
func (r receiver) SendUserMessage(_ *actor.PID, message any) {
	header, frame, _ := actor.UnwrapEnvelope(message)
	b, ok := frame.(*wrapperspb.BytesValue)
	if !ok || header == nil {
		r.t.refused(fmt.Errorf("%w: got a %T", errShape, frame))
		return
	}
	r.t.receive(header.Get(certificateHeader), b.Value)
}

// SendSystemMessage implements actor.Process. No actor watches the process.
func (receiver) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (receiver) Stop(*actor.PID) {}
