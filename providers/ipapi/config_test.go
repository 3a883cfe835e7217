package ipapi_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/providers/ipapi"
)

func TestConfig(t *testing.T) {
	free := func(base string) ipapi.Config { return ipapi.Config{Base: base, Tier: ipapi.Free} }
	pro := func(base, key string) ipapi.Config {
		return ipapi.Config{Base: base, Tier: ipapi.Pro, Key: key}
	}
	for _, row := range []struct {
		config ipapi.Config
		want   string // part of the error; "" = no error
	}{
		{free("http://ip-api.com"), ""},
		{free("http://ip-api.com/"), ""},
		{free("https://[2001:db8::1]:8443/prefix"), ""},
		{ipapi.Config{Base: "http://127.0.0.1:8082", Tier: ipapi.Sim, Connections: 1}, ""},
		{pro("https://pro.ip-api.com", key), ""},
		{pro("http://127.0.0.1:8082", key), ""},
		{pro("http://[::1]:8082", key), ""},
		{pro("http://localhost:8082", key), ""},
		{free(""), "URL"},
		{free("ip-api.com"), "http://"},
		{free("ftp://ip-api.com"), "http://"},
		{free("http://"), "host"},
		{free("http://:80"), "host"},
		{free("http:ip-api.com"), "host"},
		{free("http://ip-api.com:0"), "port"},
		{free("http://ip-api.com:65536"), "port"},
		{free("http://ip-api.com:http"), "URL"},
		{free("http://ip api.com"), "URL"},
		{free("http://" + key + "@ip-api.com"), "user"},
		{free("http://ip-api.com?key=" + key), "query"},
		{free("http://ip-api.com?"), "query"},
		{free("http://ip-api.com#" + key), "fragment"},
		{free("http://ip-api.com#"), "fragment"},
		{free("http://ip-api.com/%zz" + key), "URL"},
		{pro("https://pro.ip-api.com", ""), "key"},
		{pro("https://pro.ip-api.com", key+"\n"), "key"},
		{pro("http://pro.ip-api.com", key), "https"},
		{pro("http://127.0.0.1.example.com", key), "https"},
		{ipapi.Config{Base: "http://ip-api.com"}, "tier"},
		{ipapi.Config{Base: "http://ip-api.com", Tier: "ipapi"}, "tier"},
		{ipapi.Config{Base: "http://ip-api.com", Tier: ipapi.Free, Connections: -1}, "connections"},
	} {
		about := fmt.Sprintf("%s %q", row.config.Tier, row.config.Base)
		c, err := ipapi.New(row.config)
		if row.want == "" {
			if err != nil {
				t.Errorf("%s: got %v, want no error", about, err)
				continue
			}
			c.Close()
			continue
		}
		if err == nil {
			t.Errorf("%s: got no error, want one about %s", about, row.want)
			continue
		}
		if text := err.Error(); !strings.Contains(text, row.want) || strings.Contains(text, key) ||
			strings.Contains(text, "\n") {
			t.Errorf("%s: got %q, want one line about %s without the key", about, text, row.want)
		}
	}
}

func TestBasePrefixIsKept(t *testing.T) {
	paths := make(chan string, 1)
	c := newClientAt(t, ipapi.Config{Base: echo(t, paths) + "/prefix/", Tier: ipapi.Free})
	if _, err := c.Single(within(t), query(t, "8.8.8.8")); err != nil {
		t.Fatal(err)
	}
	if got, want := <-paths, "/prefix/json/8.8.8.8"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
