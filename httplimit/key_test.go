package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice/httplimit"
)

func TestAnAddressIsTheClientsAndNotWhatItSays(t *testing.T) {
	ours := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48")}
	for name, s := range map[string]struct {
		trusted   []netip.Prefix
		remote    string
		forwarded []string
		want      string
	}{
		"the connection's":                    {nil, "203.0.113.7:4711", nil, "203.0.113.7"},
		"nobody is trusted":                   {nil, "203.0.113.7:4711", []string{"198.51.100.1"}, "203.0.113.7"},
		"not one of ours":                     {ours, "203.0.113.7:4711", []string{"198.51.100.1"}, "203.0.113.7"},
		"ours, and says nothing":              {ours, "10.0.0.1:4711", nil, "10.0.0.1"},
		"ours, and tells":                     {ours, "10.0.0.1:4711", []string{"203.0.113.7"}, "203.0.113.7"},
		"forged on the left":                  {ours, "10.0.0.1:4711", []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		"forged as one of ours":               {ours, "10.0.0.1:4711", []string{"10.9.9.9, 203.0.113.7"}, "203.0.113.7"},
		"two of ours":                         {ours, "10.0.0.1:4711", []string{"198.51.100.1, 203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		"lines are one list":                  {ours, "10.0.0.1:4711", []string{"198.51.100.1", "203.0.113.7", "10.0.0.2"}, "203.0.113.7"},
		"only ours":                           {ours, "10.0.0.1:4711", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"no address":                          {ours, "10.0.0.1:4711", []string{"203.0.113.7, unknown, 10.0.0.2"}, "10.0.0.2"},
		"an empty entry":                      {ours, "10.0.0.1:4711", []string{"203.0.113.7,"}, "10.0.0.1"},
		"an empty line":                       {ours, "10.0.0.1:4711", []string{"203.0.113.7", ""}, "10.0.0.1"},
		"with a port":                         {ours, "10.0.0.1:4711", []string{"203.0.113.7:1234"}, "203.0.113.7"},
		"IPv6 with a port":                    {ours, "10.0.0.1:4711", []string{"[2001:db8::1]:443"}, "2001:db8::/64"},
		"IPv6 in brackets":                    {ours, "10.0.0.1:4711", []string{"[2001:db8::1]"}, "2001:db8::/64"},
		"IPv6":                                {nil, "[2001:db8:1:2:3:4:5:6]:4711", nil, "2001:db8:1:2::/64"},
		"of the same /64":                     {nil, "[2001:db8:1:2:ffff::9]:4711", nil, "2001:db8:1:2::/64"},
		"IPv6 proxy":                          {ours, "[2001:db8:ffff::1]:4711", []string{"203.0.113.7"}, "203.0.113.7"},
		"IPv4 in IPv6's clothes":              {ours, "[::ffff:203.0.113.7]:4711", nil, "203.0.113.7"},
		"ours in IPv6's clothes":              {ours, "[::ffff:10.0.0.1]:4711", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		"a prefix in IPv6's clothes":          {[]netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}, "10.0.0.1:4711", []string{"203.0.113.7"}, "203.0.113.7"},
		"a zone":                              {nil, "[fe80::1%eth0]:4711", nil, "fe80::/64"},
		"a proxy on the link":                 {[]netip.Prefix{netip.MustParsePrefix("fe80::/10")}, "[fe80::1%eth0]:4711", []string{"203.0.113.7"}, "203.0.113.7"},
		"a forged zone":                       {ours, "10.0.0.1:4711", []string{"2001:db8::1%x"}, "2001:db8::/64"},
		"a Unix socket":                       {ours, "@", []string{"203.0.113.7"}, "@"},
		"none":                                {ours, "", []string{"203.0.113.7"}, ""},
		"a prefix that is none trusts nobody": {[]netip.Prefix{{}}, "10.0.0.1:4711", []string{"203.0.113.7"}, "10.0.0.1"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = s.remote
		for _, line := range s.forwarded {
			r.Header.Add("X-Forwarded-For", line)
		}
		r.Header.Set("X-Real-IP", "192.0.2.9")
		r.Header.Set("Forwarded", "for=192.0.2.9")
		require.Equal(t, s.want, httplimit.ByAddress(s.trusted...)(r), name)
	}
}

// Whoever sends a list as long as a header can be must not make the server read it.
func TestALongListCostsNothing(t *testing.T) {
	key := httplimit.ByAddress(netip.MustParsePrefix("10.0.0.0/8"))
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", strings.Repeat("198.51.100.1, ", 70_000)+"203.0.113.7")
	require.Equal(t, "203.0.113.7", key(r))
	require.Less(t, testing.AllocsPerRun(100, func() { key(r) }), 5.0)
}

func TestAHeaderIsAKeyOfBoundedLength(t *testing.T) {
	key := httplimit.ByHeader("x-api-key")
	with := func(values ...string) *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Api-Key"] = values
		return r
	}
	require.Equal(t, "abc", key(with("abc")))
	require.Equal(t, "abc", key(with(" abc\t", "def")))
	require.Empty(t, key(with()))
	require.Equal(t, strings.Repeat("k", 64), key(with(strings.Repeat("k", 64))))
	long := key(with(strings.Repeat("k", 1<<20)))
	require.Len(t, long, len("sha256:")+64)
	require.NotEqual(t, long, key(with(strings.Repeat("k", 1<<20+1))))
	require.Empty(t, key(&http.Request{}))

	host := httptest.NewRequest("GET", "http://acme.example/", nil)
	require.Equal(t, "acme.example", httplimit.ByHeader("host")(host), "net/http keeps it elsewhere")
}

func TestATokenIsOneKeyHoweverItIsSent(t *testing.T) {
	for value, want := range map[string]string{
		"Bearer abc":    "abc",
		"bearer abc":    "abc",
		" BEARER   abc": "abc",
		"Bearer":        "",
		"Basic abc":     "",
		"abc":           "",
		"":              "",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", value)
		require.Equal(t, want, httplimit.ByBearer(r), value)
	}
	require.Empty(t, httplimit.ByBearer(&http.Request{}))
}

// Nothing that a client writes makes it somebody else: what stands left of its address is never looked at.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"", "198.51.100.1", "10.0.0.2", ",", "10.0.0.2,,", "[::1]:80", "unknown", "::ffff:10.0.0.1%x", "\x00\xff"} {
		f.Add(s, s)
	}
	key := httplimit.ByAddress(netip.MustParsePrefix("10.0.0.0/8"))
	f.Fuzz(func(t *testing.T, forged, remote string) {
		r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{}}
		r.Header["X-Forwarded-For"] = []string{forged + ",203.0.113.7, 10.0.0.2"}
		require.Equal(t, "203.0.113.7", key(r))
		r.Header["X-Forwarded-For"] = []string{forged, " 203.0.113.7"}
		require.Equal(t, "203.0.113.7", key(r))
		r.Header["X-Forwarded-For"] = []string{forged}
		require.LessOrEqual(t, len(key(r)), 71)
		r.RemoteAddr = remote
		require.LessOrEqual(t, len(key(r)), 71)
	})
}
