package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Principal is who makes a request. The zero Principal is anonymous.
type Principal struct {
	ARN     string // of the user, of the session of a role, or of the account's root
	Role    string // the ARN of the role, of a session
	Service string // such as ecs-tasks.amazonaws.com, if it's a service of AWS's
}

// Account returns the principal's account, or "".
func (p Principal) Account() string {
	if parts := strings.SplitN(p.ARN, ":", 6); len(parts) == 6 {
		return parts[4]
	}
	return ""
}

// IsRoot reports whether the principal is an account itself.
func (p Principal) IsRoot() bool { return strings.HasSuffix(p.ARN, ":root") }

// principals are the values of Principal or NotPrincipal.
type principals struct {
	named    map[string][]string // by kind; nil if the statement has neither
	not      bool
	everyone bool // "*"
}

var (
	accountID    = regexp.MustCompile(`^\d{12}$`)
	uniqueID     = regexp.MustCompile(`^A[A-Z0-9]{15,127}$`)
	principalARN = regexp.MustCompile(`^arn:aws[a-z-]*:(iam|sts)::\d{12}:(root|(user|role|assumed-role|federated-user)/[^*?]+)$`)
	serviceName  = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+$`)
	// serviceDomain has the domains that principals of services are in. Which services there are nobody lists; more come every month.
	serviceDomain = regexp.MustCompile(`\.(amazonaws\.com(\.cn)?|amazon\.com|aws\.internal)$`)
)

func (s *Statement) fillPrincipals(kind Kind, object map[string]any) error {
	value, given := object["Principal"]
	not, givenNot := object["NotPrincipal"]
	switch {
	case kind == Identity && (given || givenNot):
		return malformed("Policy document should not specify a principal.")
	case kind == Identity:
		return nil
	case given && givenNot:
		return syntax()
	case !given && !givenNot:
		return malformed("Missing required field Principal")
	case givenNot:
		value = not
		s.principals.not = true
	}
	if value == "*" {
		s.principals.everyone = true
		return nil
	}
	kinds, ok := value.(map[string]any)
	if !ok || len(kinds) == 0 {
		return syntax()
	}
	return s.principals.fill(kinds)
}

func (p *principals) fill(kinds map[string]any) error {
	p.named = map[string][]string{}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		values, err := texts(kinds[kind])
		if err != nil {
			return err
		}
		for _, value := range values {
			if !isPrincipal(kind, value) {
				return InvalidPrincipal(kind, value)
			}
			p.everyone = p.everyone || kind == "AWS" && value == "*"
		}
		p.named[kind] = values
	}
	return nil
}

// checkServices checks that the services that statements name are in AWS's domains.
func (p *Policy) checkServices() error {
	for _, name := range p.Principals("Service") {
		if !serviceDomain.MatchString(name) {
			return InvalidPrincipal("Service", name)
		}
	}
	return nil
}

// InvalidPrincipal is the error for a principal that isn't one, or that doesn't exist.
func InvalidPrincipal(kind, value string) error {
	return malformed(`Invalid principal in policy: "%s":"%s"`, strings.ToUpper(kind), value)
}

func isPrincipal(kind, value string) bool {
	switch kind {
	case "AWS":
		return value == "*" || accountID.MatchString(value) || uniqueID.MatchString(value) || principalARN.MatchString(value)
	case "Service":
		return serviceName.MatchString(value)
	case "Federated", "CanonicalUser":
		return value != ""
	}
	return false
}

// grant is how a resource-based policy names a principal. What is named more closely is limited by fewer other policies.
type grant uint8

const (
	unnamed   grant = iota
	byAccount       // its account may: the account's own policies must allow it, too
	byRole          // its role, or everyone
	itself
)

// grantTo returns how the statement names a principal.
func (p *principals) grantTo(who Principal) grant {
	best := unnamed
	if p.everyone {
		best = byRole
		if who.Role == "" {
			best = itself
		}
	}
	if who.Service != "" && slices.Contains(p.named["Service"], who.Service) {
		return itself
	}
	account := who.Account()
	for _, name := range p.named["AWS"] {
		switch {
		case who.ARN != "" && name == who.ARN:
			return itself
		case who.Role != "" && name == who.Role:
			best = max(best, byRole)
		case account != "" && (name == account || strings.HasSuffix(name, "::"+account+":root")):
			best = max(best, byAccount)
		}
	}
	return best
}

// applies returns how the statement concerns a principal: all statements of identities' policies concern it itself.
//
// NotPrincipal names a principal only with all that it is made of: its account, its role, itself. AWS may look at each of them, so it says to
// list all of them. Where that is not done, a Deny denies, and an Allow doesn't allow.
func (s *Statement) applies(who Principal) grant {
	p := &s.principals
	if p.named == nil && !p.everyone {
		return itself
	}
	if !p.not {
		return p.grantTo(who)
	}
	if p.everyone {
		return unnamed
	}
	if s.Allow && p.grantTo(who) != unnamed || !s.Allow && p.namesWhole(who) {
		return unnamed
	}
	return itself
}

// namesWhole reports whether the principal is named with its role and its account.
func (p *principals) namesWhole(who Principal) bool {
	if who.Service != "" {
		return slices.Contains(p.named["Service"], who.Service)
	}
	if who.ARN == "" {
		return false
	}
	names := p.named["AWS"]
	account := who.Account()
	ofAccount := func(name string) bool { return name == account || strings.HasSuffix(name, "::"+account+":root") }
	return slices.Contains(names, who.ARN) && slices.ContainsFunc(names, ofAccount) &&
		(who.Role == "" || slices.Contains(names, who.Role))
}
