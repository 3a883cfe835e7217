package cluster_test

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	"gatehouse/providers/cluster"
)

func TestCertificateIsRenewedAtHalfOfItsLife(t *testing.T) {
	t.Parallel()
	k := newKeys(1)
	made := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	id, err := cluster.NewIdentity(k.get, made)
	if err != nil {
		t.Fatal(err)
	}
	first := id.Hashes()
	refresh := func(after time.Duration) {
		t.Helper()
		if err := id.Refresh(made.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	refresh(12*time.Hour - time.Second)
	if got := id.Hashes(); !slices.Equal(got, first) {
		t.Errorf("got %v before half of its life, want %v", got, first)
	}
	refresh(12 * time.Hour)
	second := id.Hashes()
	if len(second) != 2 || second[0] == first[0] || second[1] != first[0] {
		t.Errorf("got %v at half of its life, want a new one before %v", second, first)
	}
	// The others learn of it before it is presented.
	if got := id.Presents(made.Add(12*time.Hour + 9*time.Second)); got != first[0] {
		t.Error("got the new certificate presented at once")
	}
	if got := id.Presents(made.Add(12*time.Hour + 11*time.Second)); got != second[0] {
		t.Error("got the former certificate presented after 11 s")
	}
	refresh(24 * time.Hour)
	third := id.Hashes()
	if len(third) != 2 || third[1] != second[0] || third[0] == second[0] {
		t.Errorf("got %v, want a new one before %v", third, second[:1])
	}
	// A process that was stopped for days has nothing left to present but a new one.
	refresh(96 * time.Hour)
	if got := id.Presents(made.Add(96 * time.Hour)); got != id.Hashes()[0] || got == third[0] {
		t.Error("got an expired certificate presented")
	}
}

func TestRotationOfTheAuthority(t *testing.T) {
	t.Parallel()
	k := newKeys(1)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	id, err := cluster.NewIdentity(k.get, now)
	if err != nil {
		t.Fatal(err)
	}
	first := id.Hashes()[0]
	k.set(2, 1)
	if err := id.Refresh(now); err != nil {
		t.Fatal(err)
	}
	if got := id.Hashes(); len(got) != 2 || got[1] != first {
		t.Errorf("got %v, want a certificate of the new authority before %s", got, first)
	}
	if got := id.Presents(now); got != first {
		t.Error("got the new certificate presented while its authority may be unknown")
	}
	// Without the former authority its certificate is of no use.
	k.set(3)
	if err := id.Refresh(now); err != nil {
		t.Fatal(err)
	}
	if got := id.Presents(now); got != id.Hashes()[0] {
		t.Error("got a certificate presented that nobody trusts")
	}
	k.set()
	if err := id.Refresh(now); err == nil {
		t.Error("got no error without keys")
	}
}

func TestAuthorityIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	k := newKeys(7)
	now := time.Now()
	one, _, err := cluster.Issue(k.get(), now)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		seeds []byte
		at    time.Duration
		want  bool
	}{
		{"the same authority", []byte{7}, 0, true},
		{"as the second of two", []byte{8, 7}, 0, true},
		{"another authority", []byte{8}, 0, false},
		{"a clock that is behind", []byte{7}, -59 * time.Minute, true},
		{"a clock that is far behind", []byte{7}, -2 * time.Hour, false},
		{"before its end", []byte{7}, 23 * time.Hour, true},
		{"after its end", []byte{7}, 25 * time.Hour, false},
	} {
		leaf, err := x509.ParseCertificate(one.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
			err := cluster.Check(newKeys(row.seeds...).get(), []*x509.Certificate{leaf}, usage, now.Add(row.at))
			if err == nil != row.want {
				t.Errorf("%s: got %v, want it valid: %v", row.name, err, row.want)
			}
		}
		if cluster.Check(newKeys(7).get(), []*x509.Certificate{leaf}, x509.ExtKeyUsageCodeSigning, now) == nil {
			t.Error("got the certificate valid for something else")
		}
		if cluster.Check(newKeys(7).get(), []*x509.Certificate{leaf, leaf}, x509.ExtKeyUsageClientAuth, now) == nil {
			t.Error("got two certificates accepted")
		}
	}
	ca := cluster.AuthorityCertificate(newKeys(7).get())
	if again := cluster.AuthorityCertificate(newKeys(7).get()); !ca.Equal(again) {
		t.Error("got two certificates of one authority")
	}
	if cluster.Check(newKeys(7).get(), []*x509.Certificate{ca}, x509.ExtKeyUsageClientAuth, now) == nil {
		t.Error("got the authority's own certificate accepted")
	}
}
