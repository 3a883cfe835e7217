package messenger_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/brand"
	"gatehouse/providers/messenger"
)

// targets parses a comma-separated list.
func targets(t *testing.T, list string) []messenger.Target {
	t.Helper()
	var found []messenger.Target
	for text := range strings.SplitSeq(list, ",") {
		target, err := messenger.ParseTarget(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		found = append(found, target)
	}
	return found
}

func TestParseTargetRejects(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "must be log",
		"logs":                                "must be log",
		"email=":                              "must be log",
		"sms.example.com":                     "must be log",
		"ftp://sms.example.com":               "must be log",
		"mailto:ada@example.com":              "must be log",
		"https://atlas:s3cr3t%zz@example.com": "must be log",
		"fax=log":                             "sms= or email=",
		"SMS=log":                             "sms= or email=",
		"http://sms.example.com/hook":         "https, or http on loopback",
		"http://127.0.0.1.example.com/":       "https, or http on loopback",
		"https:///hook":                       "a host",
		"https://h:0/":                        "a host, and a port",
		"https://h:65536/":                    "a host, and a port",
		"https://h:/":                         "a host, and a port",
		"https://h/#x":                        "no fragment",
		"sms=smtp://mail.example.com":         "text messages",
		"smtp://":                             "a host",
		"smtp://mail.example.com/inbox":       "neither path nor query",
		"smtp://mail.example.com?tls=no":      "neither path nor query",
		"smtp://atlas@mail.example.com":       "a user and a password",
		"smtp://:s3cr3t@mail.example.com":     "a user and a password",
	} {
		_, err := messenger.ParseTarget(text)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "must ") {
			t.Errorf("%s: got %v, want an error with must and %q", text, err, want)
		} else if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: got %v, want no password in it", text, err)
		}
	}
}

func TestTargetChannels(t *testing.T) {
	for list, want := range map[string]string{
		"log": "sms,email", "sms=log": "sms", "email=log": "email",
		"https://h/x?key=a=b": "sms,email", "sms=https://me:pw@h:8443/x": "sms",
		"http://localhost:1/": "sms,email", "email=http://[::1]/": "email",
		"smtp://h": "email", "smtps://u:p@h": "email", "email=smtp+insecure://h:25/": "email",
		"smtp://h,sms=log": "sms,email",
	} {
		m, err := messenger.New(messenger.Config{Targets: targets(t, list), Secret: webhookSecret,
			From: "a@example.com", Brand: brand.Brand{Name: "h", Host: "h"}})
		if err != nil {
			t.Errorf("%s: got %v, want nil", list, err)
			continue
		}
		if got := m.Channels().String(); got != want {
			t.Errorf("%s: got channels %s, want %s", list, got, want)
		}
		m.Close()
	}
}

func TestMessengerWithoutTargets(t *testing.T) {
	m, err := messenger.New(messenger.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Channels(); got != (account.Channels{}) {
		t.Errorf("got channels %v, want none", got)
	}
	if err := m.Send(t.Context(), phoneCode); err == nil {
		t.Error("got nil, want an error")
	}
}

func TestFirstTargetOfChannelIsUsed(t *testing.T) {
	first, toFirst := receive(t, 200)
	second, toSecond := receive(t, 200)
	for _, row := range []struct {
		list  string
		wants [2]int // messages at first and second after one text message and one e-mail
	}{
		{first + "," + second, [2]int{2, 0}},
		{"sms=" + first + "," + second, [2]int{1, 1}},
		{"email=" + second + "," + first, [2]int{1, 1}},
		{"email=" + first + ",sms=" + second + ",log", [2]int{1, 1}},
	} {
		before := [2]int{len(toFirst()), len(toSecond())}
		m := newWebhook(t, row.list)
		for _, channel := range []account.Channel{account.SMS, account.Email} {
			if err := m.Send(t.Context(), account.Message{Channel: channel, To: "x",
				Kind: account.ChangeCode, Code: "271828"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := [2]int{len(toFirst()) - before[0],
			len(toSecond()) - before[1]}; got != row.wants {
			t.Errorf("%s: got %v messages, want %v", row.list, got, row.wants)
		}
	}
}

func TestNewRejects(t *testing.T) {
	for _, row := range []struct {
		config messenger.Config
		want   string
	}{
		{messenger.Config{Targets: targets(t, "https://h/"), Secret: webhookSecret[1:]}, "at least 32"},
		{messenger.Config{Targets: targets(t, "smtp://h"), From: "nobody"}, "e-mail address"},
		{messenger.Config{Targets: targets(t, "smtp://h")}, "e-mail address"},
		{messenger.Config{Targets: []messenger.Target{{}}}, "without a target"},
	} {
		if _, err := messenger.New(row.config); err == nil ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %q", err, row.want)
		}
	}
}

func TestConfigPrintsNoSecrets(t *testing.T) {
	c := messenger.Config{Targets: targets(t, "https://me:s3cr3t@h/"), Secret: webhookSecret,
		Brand: brand.Brand{Host: "id.example.com"}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, c); strings.Contains(got, "s3cr3t") ||
			strings.Contains(got, webhookSecret) {
			t.Errorf("%s: got %s, want no secret", verb, got)
		}
	}
}

func TestLogTarget(t *testing.T) {
	var text bytes.Buffer
	m, err := messenger.New(messenger.Config{Targets: targets(t, "log"), Brand: brand.Brand{Name: "h", Host: "h"},
		Logger: slog.New(slog.NewTextHandler(&text, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		message account.Message
		want    string
	}{
		{phoneCode, `level=INFO msg="phone code" code=271828 to=+12025550123 kind=phone_code`},
		{account.Message{Channel: account.Email, To: "ada@example.com", Kind: account.ResetCode, Code: "314159"}, `level=INFO msg="email code" code=314159 to=ada@example.com kind=reset_code`},
		{account.Message{Channel: account.Email, To: "ada@example.com", Kind: account.NoAccount}, `level=INFO msg="email notice" to=ada@example.com kind=no_account`},
	} {
		text.Reset()
		if err := m.Send(t.Context(), row.message); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); !strings.HasSuffix(got, row.want+"\n") ||
			strings.Count(got, "\n") != 1 {
			t.Errorf("got %q, want one line with %q", got, row.want)
		}
	}
}
