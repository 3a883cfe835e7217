package account_test

import (
	"encoding/base32"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/actors/account"
)

// rfcSecret is the key of the examples of RFC 6238 appendix B.
const rfcSecret = "12345678901234567890"

func TestMatchTOTP(t *testing.T) {
	for at, code := range map[int64]string{ // the last 6 of 8 digits
		59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924",
		2000000000: "279037", 20000000000: "353130",
	} {
		for skew, want := range map[int64]bool{-60: false, -30: true, 0: true, 30: true, 60: false} {
			now := time.Unix(at, 0).Truncate(30 * time.Second).Add(time.Duration(skew) * time.Second)
			step, ok := account.MatchTOTP([]byte(rfcSecret), code[:3]+" "+code[3:], now)
			if ok != want || ok && step != at/30 {
				t.Errorf("the code of %d at %d: got step %d, %v, want %v", at, now.Unix(), step, ok, want)
			}
		}
	}
	for _, code := range []string{"", "28708", "2870822", "abcdef", "287 083"} {
		if _, ok := account.MatchTOTP([]byte(rfcSecret), code, time.Unix(59, 0)); ok {
			t.Errorf("%q: got a match", code)
		}
	}
}

// TestTOTPLikeOathtool compares with oathtool (Debian's package oathtool).
func TestTOTPLikeOathtool(t *testing.T) {
	secret := base32.StdEncoding.EncodeToString([]byte("20 bytes of a secret"))
	for n := range 20 {
		at := int64(1_700_000_000 + n*7919*30)
		out, err := exec.Command("oathtool", "--totp", "--base32", "--now", "@"+strconv.FormatInt(at, 10),
			secret).Output()
		if err != nil {
			t.Fatalf("oathtool: %v (scripts/setup installs it)", err)
		}
		code := strings.TrimSpace(string(out))
		step, ok := account.MatchTOTP([]byte("20 bytes of a secret"), code, time.Unix(at, 0))
		if !ok || step != at/30 {
			t.Errorf("%s at %d: got step %d, %v, want it accepted", code, at, step, ok)
		}
	}
}

func TestTOTPURL(t *testing.T) {
	const want = "otpauth://totp/Atlas%20Ltd:ada@example.com?secret=ABC&issuer=Atlas%20Ltd" +
		"&algorithm=SHA1&digits=6&period=30"
	if got := account.TOTPURL("Atlas Ltd", "ada@example.com", "ABC"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRecoveryCodes(t *testing.T) {
	seen := map[[32]byte]bool{}
	for range 1000 {
		code := account.NewRecoveryCode()
		hash, ok := account.RecoveryCodeHash(code)
		if !ok || len(code) != 19 || seen[hash] {
			t.Fatalf("%s: got %v, want another code of 16 letters and digits in groups of 4", code, ok)
		}
		seen[hash] = true
		for _, typed := range []string{strings.ToUpper(code), strings.ReplaceAll(code, "-", ""),
			" " + strings.ReplaceAll(code, "-", " ") + " "} {
			if again, ok := account.RecoveryCodeHash(typed); !ok || again != hash {
				t.Errorf("%q: got %v, want the same code", typed, ok)
			}
		}
	}
	for _, typed := range []string{"", "123456", "abcd-efgh-ijkl", "abcd-efgh-ijkl-mno!"} {
		if _, ok := account.RecoveryCodeHash(typed); ok {
			t.Errorf("%q: got a recovery code", typed)
		}
	}
}
