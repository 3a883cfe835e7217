package oauth_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"gatehouse/actors/oauth"
)

// notes and mail are registered; gone was deleted.
var known = oauth.NewResources("https://id.example", []oauth.Resource{
	{Number: 1, URI: "https://notes.example", Scopes: []string{"read", "write"}},
	{Number: 3, URI: "https://mail.example/v1", Scopes: []string{"send", "read"}},
})

const (
	notes = "https://notes.example"
	mail  = "https://mail.example/v1"
	own   = "https://id.example"
)

func TestResolveResources(t *testing.T) {
	free := &oauth.Client{}
	narrow := &oauth.Client{Options: oauth.ClientOptions{Resources: []string{notes + "/"}}}
	for _, row := range []struct {
		client      *oauth.Client
		uris, names string
		want        string
		code        oauth.Code
	}{
		{free, notes, "", "1:0", ""},
		{free, notes + "/", "read", "1:1", ""},
		{free, "https://NOTES.example", "write", "1:2", ""},
		{free, "https://notes.example:443/", "write", "1:2", ""},
		{free, "https://notes.example:80/", "write", "", oauth.InvalidTarget},
		{free, mail + " " + notes + " " + mail, "read", "1:1 3:2", ""},
		{free, mail + " " + notes, "read send", "1:1 3:3", ""},
		{free, own, "", "", ""},
		{free, own + "/", "", "", ""},
		{free, own + " " + notes, "read", "1:1 65535:0", ""},
		{free, own, "read", "", oauth.InvalidScope},
		{free, notes, "send", "", oauth.InvalidScope},
		{free, "https://notes.example/v2", "", "", oauth.InvalidTarget},
		{free, "http://notes.example", "", "", oauth.InvalidTarget},
		{free, notes + "#a", "", "", oauth.InvalidTarget},
		{free, "notes", "", "", oauth.InvalidTarget},
		{narrow, notes, "read", "1:1", ""},
		{narrow, own, "", "", ""},
		{narrow, mail, "", "", oauth.InvalidTarget},
	} {
		got, fault := known.Resolve(row.client, strings.Fields(row.uris), strings.Fields(row.names))
		if got.String() != row.want || codeOf(fault) != row.code {
			t.Errorf("%s, %s: got %q, %v, want %q, %s", row.uris, row.names, got, fault, row.want, row.code)
		}
	}
}

func TestAtMostEightResources(t *testing.T) {
	var all []oauth.Resource
	var uris []string
	for i := range uint16(9) {
		uris = append(uris, "https://api.example/"+strings.Repeat("x", int(i)))
		all = append(all, oauth.Resource{Number: i + 1, URI: uris[i]})
	}
	many := oauth.NewResources(own, all)
	if got, fault := many.Resolve(&oauth.Client{}, uris[:8], nil); fault != nil || len(got) != 8 {
		t.Errorf("got %v, %v, want 8", got, fault)
	}
	if _, fault := many.Resolve(&oauth.Client{}, uris, nil); codeOf(fault) != oauth.InvalidTarget {
		t.Errorf("got %v for 9, want %s", fault, oauth.InvalidTarget)
	}
}

func TestNarrowResources(t *testing.T) {
	free := &oauth.Client{}
	narrow := &oauth.Client{Options: oauth.ClientOptions{Resources: []string{notes}}}
	for _, row := range []struct {
		client        *oauth.Client
		granted, uris string
		names         []string
		want          string
		code          oauth.Code
	}{
		{free, "1:3 3:2", "", nil, "1:3 3:2", ""},
		{free, "1:3 3:2", mail, nil, "3:2", ""},
		{free, "1:3 3:2", "", []string{"read"}, "1:1 3:2", ""},
		{free, "1:3 3:2", "", []string{}, "1:0 3:0", ""},
		{free, "1:3 3:2", mail, []string{"write"}, "", oauth.InvalidScope},
		{free, "1:1", "", []string{"write"}, "", oauth.InvalidScope},
		{free, "1:3", mail, nil, "", oauth.InvalidTarget},
		{free, "1:3", own, nil, "", oauth.InvalidTarget},
		{free, "1:3 65535:0", own, nil, "65535:0", ""},
		{free, "", own, nil, "", ""},
		{free, "", "", nil, "", ""},
		{free, "", notes, nil, "", oauth.InvalidTarget},
		{free, "1:1 2:1", "", nil, "1:1", ""},
		{free, "2:1", "", nil, "", oauth.InvalidTarget},
		{free, "1:1", "https://gone.example", nil, "", oauth.InvalidTarget},
		{narrow, "1:3 3:2", "", nil, "1:3", ""},
		{narrow, "3:2", "", nil, "", oauth.InvalidTarget},
	} {
		granted, err := oauth.ParseTargets(row.granted)
		if err != nil {
			t.Fatal(err)
		}
		got, fault := known.Narrow(granted, row.client, strings.Fields(row.uris), row.names)
		if got.String() != row.want || codeOf(fault) != row.code {
			t.Errorf("%s to %s, %q: got %q, %v, want %q, %s", row.granted, row.uris, row.names, got,
				fault, row.want, row.code)
		}
		if granted.String() != row.granted {
			t.Errorf("got the grant changed to %s, want %s", granted, row.granted)
		}
	}
}

func TestTargetsText(t *testing.T) {
	for _, text := range []string{"", "1:0", "1:65535 65534:7"} {
		got, err := oauth.ParseTargets(text)
		if err != nil || got.String() != text {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"1", "1:x", "x:1", "65536:0", "1:65536", "-1:0"} {
		if got, err := oauth.ParseTargets(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestTargetsOfConsent(t *testing.T) {
	parse := func(text string) oauth.Targets {
		t.Helper()
		got, err := oauth.ParseTargets(text)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, row := range []struct {
		granted, asked string
		contains       bool
		union          string
	}{
		{"", "", true, ""}, {"", "1:0", false, "1:0"}, {"1:0", "1:0", true, "1:0"},
		{"1:1", "1:2", false, "1:3"}, {"1:3", "1:2", true, "1:3"}, {"3:1", "1:1", false, "1:1 3:1"},
		{"1:1", "1:1 65535:0", true, "1:1"}, {"", "65535:0", true, ""},
	} {
		granted, asked := parse(row.granted), parse(row.asked)
		if got := granted.Contains(asked); got != row.contains {
			t.Errorf("%s contains %s: got %t, want %t", granted, asked, got, row.contains)
		}
		if got := granted.Union(asked).String(); got != row.union {
			t.Errorf("%s and %s: got %s, want %s", granted, asked, got, row.union)
		}
	}
}

func TestResourceRegistration(t *testing.T) {
	for _, r := range []oauth.Resource{
		{URI: notes}, {URI: "https://api.example/v1?x=1", Scopes: []string{"a:b/c", "~"}},
		{URI: "http://localhost:8000/"},
		{URI: notes, Scopes: []string{"a", "b"}, Name: "Notes", Texts: map[string]string{"a": "Read"}},
	} {
		if err := r.CheckRegistration(); err != nil {
			t.Errorf("%s: got %v, want nil", r.URI, err)
		}
	}
	for _, row := range []struct {
		field string
		r     oauth.Resource
	}{
		{"uri", oauth.Resource{}},
		{"uri", oauth.Resource{URI: "http://notes.example"}},
		{"uri", oauth.Resource{URI: notes + "/#a"}},
		{"uri", oauth.Resource{URI: "urn:notes"}},
		{"uri", oauth.Resource{URI: notes + "/" + strings.Repeat("a", 250)}},
		{"scopes", oauth.Resource{URI: notes, Scopes: make([]string, 17)}},
		{"scopes", oauth.Resource{URI: notes, Scopes: []string{""}}},
		{"scopes", oauth.Resource{URI: notes, Scopes: []string{"a b"}}},
		{"scopes", oauth.Resource{URI: notes, Scopes: []string{`a"b`}}},
		{"scopes", oauth.Resource{URI: notes, Scopes: []string{"é"}}},
		{"scopes", oauth.Resource{URI: notes, Scopes: []string{"a", "a"}}},
		{"scopes", oauth.Resource{URI: notes, Scopes: []string{strings.Repeat("a", 65)}}},
		{"scopes", oauth.Resource{URI: notes, Scopes: []string{"openid"}}},
		{"scopes", oauth.Resource{URI: notes, Scopes: []string{"server-operations"}}},
		{"name", oauth.Resource{URI: notes, Name: strings.Repeat("a", 101)}},
		{"name", oauth.Resource{URI: notes, Name: "a\u202eb"}},
		{"scope_texts", oauth.Resource{URI: notes, Texts: map[string]string{"a": "Read"}}},
		{"scope_texts", oauth.Resource{URI: notes, Scopes: []string{"a"}, Texts: map[string]string{"a": " "}}},
	} {
		var wrong *oauth.RegistrationError
		if err := row.r.CheckRegistration(); !errors.As(err, &wrong) || wrong.Field != row.field {
			t.Errorf("got %v, want an error about %s of %.100v", err, row.field, row.r)
		}
	}
}

func TestResourceMetadataURL(t *testing.T) {
	for uri, want := range map[string]string{
		"https://a.example":          "https://a.example/.well-known/oauth-protected-resource",
		"https://a.example/":         "https://a.example/.well-known/oauth-protected-resource",
		"https://a.example:8443/v1":  "https://a.example:8443/.well-known/oauth-protected-resource/v1",
		"https://a.example/v1/?x=/1": "https://a.example/.well-known/oauth-protected-resource/v1?x=/1",
	} {
		if got := oauth.ResourceMetadataURL(uri); got != want {
			t.Errorf("%s: got %s, want %s", uri, got, want)
		}
	}
}

func TestIntrospectionNamesAudience(t *testing.T) {
	i := oauth.Introspection{Active: true, Scopes: oauth.OpenID, ClientID: "c",
		ResourceScopes: []string{"read"}, Audience: []string{notes, mail}}
	got := string(i.AppendJSON(nil))
	if !strings.Contains(got, `"scope":"openid read"`) ||
		!strings.Contains(got, `,"aud":["https://notes.example","https://mail.example/v1"]`) {
		t.Errorf("got %s", got)
	}
	if none := (&oauth.GrantDetails{Targets: oauth.Targets{{Resource: 1}}}); none.IsZero() {
		t.Error("got no details to keep, want targets")
	}
	if got := known.Reaches(oauth.Targets{{Resource: 3, Scopes: 2}}); !reflect.DeepEqual(got,
		[]oauth.Reach{{Target: oauth.Target{Resource: 3, Scopes: 2},
			URI: "https://mail.example/v1", Place: "mail.example/v1",
			Scopes: []string{"read"}, Raw: []string{"read"}}}) {
		t.Errorf("got %+v", got)
	}
}

// TestRecordedResources has a list of scopes for each, also an empty one.
func TestRecordedResources(t *testing.T) {
	got := oauth.Recorded([]oauth.Reach{{URI: notes}, {URI: mail, Scopes: []string{"send"}}})
	want := []map[string]any{{"resource": notes, "scopes": []string{}},
		{"resource": mail, "scopes": []string{"send"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
