package nameserver

import (
	"net/netip"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/pintle/pintle/internal/awsname"
)

// AWS says how the names of AWS's hosts are answered to tasks in place of AWS.
type AWS struct {
	// Address is where the services are that Pintle has.
	Address netip.Addr
	// Others says that the machine's name servers are asked for the names of other services. These aren't there otherwise.
	Others bool
}

// ttlAWS is how long such an answer holds, in seconds: it's wrong once the task asks elsewhere.
const ttlAWS = 5

// answer answers a query, if it's for a name that isn't the name servers' to answer.
func (a *AWS) answer(q *query) (r reply, ours bool) {
	name := q.name()
	isServed := awsname.Served(name)
	switch {
	case a == nil || !awsname.IsAWS(name) || q.question.Class != dnsmessage.ClassINET || q.header.OpCode != 0:
		return r, false
	case !isServed && a.Others:
		return r, false
	case !isServed:
		return reply{ours: true, zone: awsname.Domain, code: dnsmessage.RCodeNameError}, true
	}
	r = reply{ours: true, zone: awsname.Domain}
	if q.question.Type == dnsmessage.TypeA || q.question.Type == dnsmessage.TypeALL {
		h := dnsmessage.ResourceHeader{Name: q.question.Name, Class: dnsmessage.ClassINET, Type: dnsmessage.TypeA, TTL: ttlAWS}
		r.answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: a.Address.As4()}}}
	}
	return r, true
}
