package nameserver

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/pintle/pintle/internal/acs"
)

const (
	maxAnswers   = 8    // of a name with several instances: API_DnsConfig, MULTIVALUE
	maxAliases   = 8    // that one answer follows
	plainSize    = 512  // of an answer over UDP to who says nothing of sizes
	maxUDPSize   = 1232 // of one to who does: https://www.dnsflagday.net/2020/
	maxQuerySize = 4096
)

// query is a question, and what its answer has to look like.
type query struct {
	header   dnsmessage.Header
	question dnsmessage.Question
	edns     bool
	size     int // how long the answer may be
}

// name returns the name that's asked for, in lower case and without the dot at its end.
func (q *query) name() string { return fold(q.question.Name) }

func fold(n dnsmessage.Name) string { return strings.ToLower(strings.TrimSuffix(n.String(), ".")) }

// errIgnored is for messages that get no answer: an answer to one that is itself an answer could go round for ever.
var errIgnored = errors.New("no query")

// parse reads a query. An error that isn't errIgnored comes with the header to answer with.
func parse(message []byte, overUDP bool) (*query, error) {
	q := &query{size: 65535}
	var p dnsmessage.Parser
	var err error
	if q.header, err = p.Start(message); err != nil || q.header.Response || len(message) > maxQuerySize {
		return nil, errIgnored
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return q, errors.New("not one question")
	}
	q.question = questions[0]
	if err := errors.Join(p.SkipAllAnswers(), p.SkipAllAuthorities()); err != nil {
		return q, err
	}
	asked := plainSize
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err != nil {
			return q, err
		}
		if h.Type == dnsmessage.TypeOPT {
			q.edns = true
			asked = min(max(int(h.Class), plainSize), maxUDPSize)
		}
		if err := p.SkipAdditional(); err != nil {
			return q, err
		}
	}
	if overUDP {
		q.size = asked
	}
	return q, nil
}

// reply is an answer that is being made.
type reply struct {
	code       dnsmessage.RCode
	ours       bool // the name is in one of the zones
	zone       string
	answers    []dnsmessage.Resource
	additional []dnsmessage.Resource
	// alias is a name that isn't ours, which the last answer is another name of.
	alias dnsmessage.Name
}

// answer answers a query from the directory. It's not ours if the name is in none of the zones.
func (d *directory) answer(q *query) (r reply) {
	switch {
	case q.header.OpCode != 0:
		return reply{ours: true, code: dnsmessage.RCodeNotImplemented}
	case q.question.Class != dnsmessage.ClassINET:
		return reply{ours: true, code: dnsmessage.RCodeRefused}
	}
	name := q.name()
	for range maxAliases {
		zone, ours := d.zoneOf(name)
		if !ours {
			return r
		}
		r.ours = true
		r.zone = zone
		e, known := d.names[name]
		if !known {
			r.code = dnsmessage.RCodeNameError
			return r
		}
		next := d.records(&r, e, q, nameOr(name, q, len(r.answers) == 0))
		if next == "" {
			return r
		}
		name = strings.ToLower(next)
		if _, ours := d.zoneOf(name); !ours {
			r.alias, _ = dnsmessage.NewName(next + ".") //nolint:errcheck // it was packed as an answer
			return r
		}
	}
	r.code = dnsmessage.RCodeServerFailure // the aliases go round
	return r
}

// nameOr returns the owner of records: the question's own spelling, or the name that an alias has led to.
func nameOr(name string, q *query, first bool) dnsmessage.Name {
	if first {
		return q.question.Name
	}
	n, _ := dnsmessage.NewName(name + ".") //nolint:errcheck // it's one of ours, which are short enough
	return n
}

// records adds the records of a name that are asked for, and returns the name that it's an alias of, or "".
func (d *directory) records(r *reply, e entry, q *query, owner dnsmessage.Name) (alias string) {
	if _, isZone := d.zones[fold(owner)]; isZone && q.question.Type == dnsmessage.TypeSOA {
		r.answers = append(r.answers, d.soa(fold(owner)))
	}
	if e.service == nil {
		return ""
	}
	isHost := fold(owner) != strings.ToLower(e.service.Name)
	for _, i := range chosen(e, isHost) {
		add := func(kind dnsmessage.Type, ttl uint32, body dnsmessage.ResourceBody) {
			h := dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET, Type: kind, TTL: ttl}
			r.answers = append(r.answers, dnsmessage.Resource{Header: h, Body: body})
		}
		if ttl, ok := e.service.Records["CNAME"]; ok && !isHost {
			target, err := dnsmessage.NewName(strings.TrimSuffix(i.CNAME, ".") + ".")
			if err != nil {
				continue
			}
			add(dnsmessage.TypeCNAME, ttl, &dnsmessage.CNAMEResource{CNAME: target})
			if q.question.Type == dnsmessage.TypeCNAME {
				return ""
			}
			return strings.TrimSuffix(i.CNAME, ".")
		}
		for kind, ttl := range wanted(e.service, isHost, q.question.Type) {
			if body := bodyOf(kind, e.service, i); body != nil {
				add(kind, ttl, body)
			}
			if kind == dnsmessage.TypeSRV {
				r.addHost(e.service, i)
			}
		}
	}
	return ""
}

// wanted returns the types that a question of one type asks for, with their TTL. An instance of a service with SRV records has addresses.
func wanted(s *acs.NamedService, isHost bool, asked dnsmessage.Type) map[dnsmessage.Type]uint32 {
	out := map[dnsmessage.Type]uint32{}
	for kind, name := range map[dnsmessage.Type]string{dnsmessage.TypeA: "A", dnsmessage.TypeAAAA: "AAAA", dnsmessage.TypeSRV: "SRV"} {
		ttl, has := s.Records[name]
		if isHost {
			ttl, has = s.Records["SRV"], kind != dnsmessage.TypeSRV
		}
		if has && (asked == kind || asked == dnsmessage.TypeALL) {
			out[kind] = ttl
		}
	}
	return out
}

// chosen returns the instances that one answer tells: up to eight healthy ones, or one if the policy is WEIGHTED. If none is healthy, all
// count as if they were: API_DnsConfig.
func chosen(e entry, isHost bool) []acs.NamedInstance {
	if isHost {
		return e.instances
	}
	healthy := slices.DeleteFunc(slices.Clone(e.instances), func(i acs.NamedInstance) bool { return i.Unhealthy })
	if len(healthy) == 0 {
		healthy = slices.Clone(e.instances)
	}
	rand.Shuffle(len(healthy), func(i, j int) { healthy[i], healthy[j] = healthy[j], healthy[i] })
	if e.service.Weighted {
		return healthy[:1]
	}
	return healthy[:min(len(healthy), maxAnswers)]
}

// bodyOf returns an instance's record of a type, or nil if it has none.
func bodyOf(kind dnsmessage.Type, s *acs.NamedService, i acs.NamedInstance) dnsmessage.ResourceBody {
	switch kind {
	case dnsmessage.TypeA:
		if a, err := netip.ParseAddr(i.IPv4); err == nil && a.Is4() {
			return &dnsmessage.AResource{A: a.As4()}
		}
	case dnsmessage.TypeAAAA:
		if a, err := netip.ParseAddr(i.IPv6); err == nil && a.Is6() {
			return &dnsmessage.AAAAResource{AAAA: a.As16()}
		}
	case dnsmessage.TypeSRV:
		if host, ok := hostOf(s, i); ok {
			return &dnsmessage.SRVResource{Priority: 1, Weight: 1, Port: i.Port, Target: host}
		}
	}
	return nil
}

// hostOf returns the name of an instance, unless its id is too long for a name.
func hostOf(s *acs.NamedService, i acs.NamedInstance) (dnsmessage.Name, bool) {
	for part := range strings.SplitSeq(i.ID, ".") {
		if part == "" || len(part) > 63 {
			return dnsmessage.Name{}, false
		}
	}
	n, err := dnsmessage.NewName(strings.ToLower(i.ID) + "." + s.Name + ".")
	return n, err == nil
}

// addHost adds the addresses of an SRV record's target, which spares whoever asks another question.
func (r *reply) addHost(s *acs.NamedService, i acs.NamedInstance) {
	host, ok := hostOf(s, i)
	if !ok {
		return
	}
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		if body := bodyOf(kind, s, i); body != nil {
			h := dnsmessage.ResourceHeader{Name: host, Class: dnsmessage.ClassINET, Type: kind, TTL: s.Records["SRV"]}
			r.additional = append(r.additional, dnsmessage.Resource{Header: h, Body: body})
		}
	}
}

// soa returns a zone's SOA record, which says in a negative answer how long that holds.
func (d *directory) soa(zone string) dnsmessage.Resource {
	name, _ := dnsmessage.NewName(zone + ".") //nolint:errcheck // Cloud Map has no longer ones; an empty name isn't packed
	ttl := d.zones[zone]
	return dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, Type: dnsmessage.TypeSOA, TTL: ttl},
		Body:   &dnsmessage.SOAResource{NS: name, MBox: name, Serial: 1, Refresh: 7200, Retry: 900, Expire: 1209600, MinTTL: ttl},
	}
}

// pack writes an answer. One that is too long is cut off, and says so.
func (d *directory) pack(q *query, r reply) []byte {
	m := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID:                 q.header.ID,
			Response:           true,
			OpCode:             q.header.OpCode,
			Authoritative:      r.zone != "",
			RecursionDesired:   q.header.RecursionDesired,
			RecursionAvailable: true,
			RCode:              r.code,
		},
		Answers:     r.answers,
		Additionals: r.additional,
	}
	if q.question.Name.Length > 0 {
		m.Questions = []dnsmessage.Question{q.question}
	}
	if r.zone != "" && len(r.answers) == 0 {
		m.Authorities = []dnsmessage.Resource{d.soa(r.zone)}
	}
	var option []dnsmessage.Resource
	if q.edns {
		var h dnsmessage.ResourceHeader
		h.SetEDNS0(maxUDPSize, dnsmessage.RCodeSuccess, false) //nolint:errcheck // it only fails for an unknown code
		option = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.OPTResource{}}}
	}
	m.Additionals = append(m.Additionals, option...)
	out, err := m.Pack()
	if len(out) > q.size {
		m.Additionals = option
		out, err = m.Pack()
	}
	if len(out) > q.size {
		m.Truncated = true
		m.Answers = nil
		out, err = m.Pack()
	}
	if err != nil {
		return nil
	}
	return out
}
