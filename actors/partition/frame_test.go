package partition_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"gatehouse/actors/partition"
)

// everyKind returns a frame with each kind of message, one of them unknown.
func everyKind() *partition.Frame {
	rows := []partition.Row{{Name: "00", Holder: "a", Epoch: 3}, {Name: "geo/", Holder: "", Epoch: 1}}
	return &partition.Frame{
		Version: partition.Version, From: "a", To: "b", Number: 7, Reply: 6,
		Messages: []partition.Message{
			{Kind: partition.Hello},
			{Kind: partition.Welcome},
			{Kind: partition.Move, Number: 9, Rows: rows, Claimed: []int64{2, -1},
				Counts: []byte("counts"), Piece: 3, More: true},
			{Kind: partition.Move, Number: 9, Rows: rows[:1], Claimed: []int64{2}, Piece: 4},
			{Kind: partition.Moved, Number: 9, Refused: true},
			{Kind: partition.Taken, Rows: rows},
			{Kind: partition.Changed, Number: 1 << 40},
			{Kind: partition.Seen, Number: -1},
			{Kind: partition.Ask, Number: 1, Service: partition.ServiceLookups, Partition: 256, Epoch: 4,
				Body: []byte("question")},
			{Kind: partition.AskNode, Number: 2, Service: partition.ServiceTokens, Partition: 7,
				Body: []byte("question")},
			{Kind: partition.Answer, Number: 1, Status: partition.Elsewhere, Epoch: 5, Body: []byte{0}},
			{Kind: partition.Cast, Service: partition.ServiceThrottles, Body: []byte("news")},
			{Kind: partition.Unsupported, Number: 1},
			{Kind: 200, Number: 12, Body: []byte("of a later release")},
		},
	}
}

func TestFrameRoundTrip(t *testing.T) {
	want := everyKind()
	b := partition.AppendFrame([]byte("before"), want)
	got, err := partition.ParseFrame(b[len("before"):])
	if err != nil || !reflect.DeepEqual(&got, want) {
		t.Errorf("got %+v %v, want %+v", got, err, want)
	}
}

func TestFrameIsRefused(t *testing.T) {
	whole := partition.AppendFrame(nil, everyKind())
	for n := range len(whole) {
		got, err := partition.ParseFrame(whole[:n])
		if err == nil && len(got.Messages) >= len(everyKind().Messages) {
			t.Errorf("first %d of %d bytes: got the whole frame", n, len(whole))
		}
	}
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, partition.ErrFrame},
		{"version 0", append([]byte{0}, whole[1:]...), partition.ErrVersion},
		{"later version", append([]byte{partition.Version + 1}, whole[1:]...), partition.ErrVersion},
		{"ID longer than the frame", []byte{1, 200, 1, 'a'}, partition.ErrFrame},
		{"rows without end", []byte{1, 0, 0, 0, 0, byte(partition.Taken), 6, 0, 255, 255, 255, 255, 15},
			partition.ErrFrame},
		{"rest after a message", []byte{1, 0, 0, 0, 0, byte(partition.Seen), 2, 0, 0},
			partition.ErrFrame},
		{"neither true nor false", []byte{1, 0, 0, 0, 0, byte(partition.Moved), 2, 0, 2},
			partition.ErrFrame},
		{"rows and claims differ", []byte{1, 0, 0, 0, 0, byte(partition.Move), 5, 0, 0, 1, 0, 0},
			partition.ErrFrame},
	}
	for _, test := range tests {
		if _, err := partition.ParseFrame(test.b); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	f.Add(partition.AppendFrame(nil, everyKind()))
	f.Add(partition.AppendFrame(nil, &partition.Frame{Version: 1, From: "a", To: "b"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := partition.ParseFrame(b)
		if err != nil {
			return
		}
		encoded := partition.AppendFrame(nil, &first)
		second, err := partition.ParseFrame(encoded)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("got %+v %v after %+v", second, err, first)
		}
		if again := partition.AppendFrame(nil, &second); !bytes.Equal(again, encoded) {
			t.Errorf("got %x, want %x", again, encoded)
		}
	})
}
