package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"strings"
)

// ByHeader returns a function that tells requests apart by a header, such as X-API-Key: its first value, without
// surrounding space, or "" where there is none. What is longer than 64 bytes becomes its SHA-256: keys are kept, and a
// stranger must not choose how much memory they take.
//
// Anybody can send any header. Put the middleware behind whatever checks it, or join the limit with one for the
// client's address: else each invented key comes with a full burst.
func ByHeader(name string) func(*http.Request) string {
	name = http.CanonicalHeaderKey(name)
	if name == "Host" { // net/http takes it out of the header
		return func(r *http.Request) string { return short(strings.TrimSpace(r.Host)) }
	}
	return func(r *http.Request) string {
		if v := r.Header[name]; len(v) > 0 {
			return short(strings.TrimSpace(v[0]))
		}
		return ""
	}
}

// ByBearer tells requests apart by the token of "Authorization: Bearer token": the same token is the same key however the
// scheme is written. It is "" where there is none. See ByHeader for what is long, and for what is invented.
func ByBearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return short(strings.TrimSpace(token))
}

const longest = 64

func short(key string) string {
	if len(key) <= longest {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ByAddress returns a function that tells requests apart by the address of their client: an IPv4 address, or the /64 of
// an IPv6 address, for whoever has one of those has them all.
//
// trusted are the proxies in front of the server, as prefixes: only what they report is believed. Without any, the
// address is that of the connection, and X-Forwarded-For is ignored. If the connection comes from a trusted proxy,
// X-Forwarded-For is read from its right end, where the nearest proxy wrote whom it was talking to, and on past
// every trusted proxy; the first address that is none of them is the client. What stands left of it is whatever the
// client cared to write. If an entry is no address, the key is that of the proxy that passed it on, and if all are
// trusted, the last one's.
//
// A proxy must append to X-Forwarded-For, or replace it; never trust one that passes it on as it came. Forwarded (RFC
// 7239), X-Real-IP and the like are not looked at. A connection without an address (a Unix socket) has its
// RemoteAddr as its key.
func ByAddress(trusted ...netip.Prefix) func(*http.Request) string {
	var trusts []netip.Prefix
	for _, p := range trusted {
		if p.Addr().Is4In6() && p.Bits() >= 96 { // as the addresses are: see parseAddr
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		trusts = append(trusts, p)
	}
	return func(r *http.Request) string {
		addr, ok := parseAddr(r.RemoteAddr)
		if !ok {
			return short(r.RemoteAddr)
		}
		list := hops{lines: r.Header["X-Forwarded-For"]}
		for contains(trusts, addr) {
			hop, ok := parseAddr(list.next())
			if !ok {
				break
			}
			addr = hop
		}
		return addressKey(addr)
	}
}

// hops are the entries of a list header from right to left. The list is not split: the client chooses its length, and
// only as much is looked at as is believed.
type hops struct {
	lines []string // that have not been begun
	rest  string   // of the line that has been
	more  bool     // there is a rest
}

// next returns "" when there are no more.
func (h *hops) next() string {
	if !h.more {
		if len(h.lines) == 0 {
			return ""
		}
		last := len(h.lines) - 1
		h.rest, h.lines = h.lines[last], h.lines[:last]
	}
	i := strings.LastIndexByte(h.rest, ',')
	hop := h.rest[i+1:]
	h.rest, h.more = h.rest[:max(i, 0)], i >= 0
	return strings.TrimSpace(hop)
}

// parseAddr reads an address with or without a port. An IPv4 address in IPv6's clothes is the IPv4 address, and a zone
// is dropped: it is part of how we reach a host, not of who it is.
func parseAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = ap.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func addressKey(addr netip.Addr) string {
	if addr.Is4() {
		return addr.String()
	}
	p, err := addr.Prefix(64)
	if err != nil {
		return addr.String()
	}
	return p.String()
}
