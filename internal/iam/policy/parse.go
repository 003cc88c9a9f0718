package policy

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDocument is the most bytes of a document, with its white space.
const MaxDocument = 128 << 10

// maxStatements bounds what one evaluation costs.
const maxStatements = 2000

func malformed(format string, args ...any) error { return &Malformed{fmt.Sprintf(format, args...)} }

func syntax() error { return malformed("Syntax errors in policy.") }

// Check parses a document that somebody puts. It refuses more than Parse: what earlier versions have stored must go on to parse, or an upgrade
// would take all of a policy away for one name in it. Its errors are *Malformed.
func Check(kind Kind, document string) (*Policy, error) {
	p, err := Parse(kind, document)
	if err != nil {
		return nil, err
	}
	return p, p.checkServices()
}

// Parse parses a document of a kind, to evaluate it. Its errors are *Malformed.
func Parse(kind Kind, document string) (*Policy, error) {
	if len(document) > MaxDocument {
		return nil, syntax()
	}
	d := jsontext.NewDecoder(strings.NewReader(document))
	if d.PeekKind() != '{' {
		return nil, notJSON(kind)
	}
	p := &Policy{}
	if err := p.read(kind, d); err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, notJSON(kind)
	}
	return p, p.checkSids()
}

// notJSON is the error for a document that isn't JSON, which IAM words differently for the trust policies of roles.
func notJSON(kind Kind) error {
	if kind == Trust {
		return malformed("This policy contains invalid Json")
	}
	return syntax()
}

// read reads the document's object.
func (p *Policy) read(kind Kind, d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return notJSON(kind)
	}
	hasStatement := false
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return notJSON(kind)
		}
		switch element := name.String(); element {
		case "Version", "Id":
			if err := p.readText(kind, element, d); err != nil {
				return err
			}
		case "Statement":
			hasStatement = true
			if err := p.readStatements(kind, d); err != nil {
				return err
			}
		default:
			return syntax()
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return notJSON(kind)
	}
	if !hasStatement || len(p.Statements) == 0 {
		return syntax()
	}
	return nil
}

func (p *Policy) readText(kind Kind, element string, d *jsontext.Decoder) error {
	if d.PeekKind() != '"' {
		return syntax()
	}
	value, err := d.ReadToken()
	if err != nil {
		return notJSON(kind)
	}
	switch text := value.String(); {
	case element == "Id":
		p.ID = text
	case text == "2012-10-17":
		p.variables = true
	case text != "2008-10-17":
		return syntax()
	}
	return nil
}

// readStatements reads the value of Statement: one, or a list of them.
func (p *Policy) readStatements(kind Kind, d *jsontext.Decoder) error {
	if d.PeekKind() == '{' {
		return p.readStatement(kind, d)
	}
	if d.PeekKind() != '[' {
		return syntax()
	}
	if _, err := d.ReadToken(); err != nil {
		return notJSON(kind)
	}
	for d.PeekKind() == '{' {
		if err := p.readStatement(kind, d); err != nil {
			return err
		}
	}
	if end, err := d.ReadToken(); err != nil {
		return notJSON(kind)
	} else if end.Kind() != ']' {
		return syntax()
	}
	return nil
}

func (p *Policy) readStatement(kind Kind, d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return notJSON(kind)
	}
	var object map[string]any
	if err := json.Unmarshal(value, &object); err != nil || len(p.Statements) == maxStatements {
		return syntax()
	}
	s := Statement{End: d.InputOffset()}
	s.Start = s.End - int64(len(bytes.TrimLeft(value, " \t\r\n")))
	if err := s.fill(kind, object); err != nil {
		return err
	}
	p.Statements = append(p.Statements, s)
	return nil
}

// fill sets a statement's elements, having checked them.
func (s *Statement) fill(kind Kind, object map[string]any) error {
	for name := range object {
		if !slices.Contains([]string{
			"Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition",
		}, name) {
			return syntax()
		}
	}
	if err := s.fillHead(object); err != nil {
		return err
	}
	if err := s.fillPrincipals(kind, object); err != nil {
		return err
	}
	var err error
	if s.actions, err = elementsOf(object, "Action"); err != nil {
		return err
	}
	if s.resources, err = elementsOf(object, "Resource"); err != nil {
		return err
	}
	if err := s.checkActions(kind); err != nil {
		return err
	}
	if err := s.checkResources(kind, object); err != nil {
		return err
	}
	s.conditions, err = conditionsOf(object["Condition"])
	return err
}

var alphanumeric = regexp.MustCompile(`^[0-9A-Za-z]*$`)

func (s *Statement) fillHead(object map[string]any) error {
	if sid, given := object["Sid"]; given {
		text, ok := sid.(string)
		if !ok {
			return syntax()
		}
		s.Sid = text
	}
	switch object["Effect"] {
	case "Allow":
		s.Allow = true
	case "Deny":
	default:
		return syntax()
	}
	return nil
}

// checkSids checks that no two statements have one id.
func (p *Policy) checkSids() error {
	seen := map[string]bool{}
	for _, s := range p.Statements {
		if s.Sid != "" && seen[s.Sid] {
			return malformed("Statement IDs (SID) in a single policy must be unique.")
		}
		seen[s.Sid] = true
	}
	return nil
}

// elementsOf returns the values of an element or of its Not… form, of which a statement may have one.
func elementsOf(object map[string]any, name string) (e elements, err error) {
	value, given := object[name]
	not, givenNot := object["Not"+name]
	if given && givenNot {
		return e, syntax()
	}
	if givenNot {
		value = not
		e.not = true
	}
	if given || givenNot {
		e.values, err = texts(value)
	}
	return e, err
}

// texts returns a text, or a list of them.
func texts(value any) ([]string, error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case []any:
		list := make([]string, len(v))
		for i, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, syntax()
			}
			list[i] = text
		}
		return list, nil
	}
	return nil, syntax()
}

var vendor = regexp.MustCompile(`^(\*|[a-zA-Z0-9.-]+)$`)

func (s *Statement) checkActions(kind Kind) error {
	if len(s.actions.values) == 0 {
		return malformed("Policy statement must contain actions.")
	}
	for _, action := range s.actions.values {
		service, _, found := strings.Cut(action, ":")
		switch {
		case kind == Trust && !strings.EqualFold(service, "sts"):
			return malformed("AssumeRole policy may only specify STS AssumeRole actions.")
		case action == "*":
		case !found:
			return malformed("Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.")
		case strings.Count(action, ":") > 1:
			return malformed("Actions/Condition can contain only one colon.")
		case !vendor.MatchString(service):
			return malformed("Vendor %s is not valid", service)
		}
	}
	return nil
}

func (s *Statement) checkResources(kind Kind, object map[string]any) error {
	if kind == Trust {
		for _, name := range []string{"Resource", "NotResource"} {
			if _, given := object[name]; given {
				return malformed("Has prohibited field %s", name)
			}
		}
		return nil
	}
	_, given := object["Resource"]
	_, givenNot := object["NotResource"]
	if len(s.resources.values) == 0 && (kind == Identity || given || givenNot) {
		return malformed("Policy statement must contain resources.")
	}
	if kind == Identity && !alphanumeric.MatchString(s.Sid) {
		return malformed("Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular expression [0-9A-Za-z]*")
	}
	for _, resource := range s.resources.values {
		if err := checkResource(resource); err != nil {
			return err
		}
	}
	return nil
}

var partitions = []string{"aws", "aws-cn", "aws-us-gov", "*"}

func checkResource(resource string) error {
	parts := strings.SplitN(resource, ":", 6)
	switch {
	case resource == "*":
	case parts[0] != "arn":
		return malformed(`Resource %s must be in ARN format or "*".`, resource)
	case len(parts) < 6 && !strings.HasSuffix(resource, "*"):
		return malformed("The policy failed legacy parsing")
	case !slices.Contains(partitions, parts[1]):
		return malformed(`Partition "%s" is not valid for resource "%s".`, parts[1], resource)
	case len(parts) == 6 && strings.ContainsAny(parts[2], "?*") && parts[2] != "*":
		return malformed("Resource vendor must be fully qualified and cannot contain regexes.")
	}
	return nil
}

// conditionsOf reads a statement's Condition: operators, keys and values. All of them must hold, so their order doesn't matter; they are
// sorted to make errors the same every time.
func conditionsOf(value any) (all []condition, err error) {
	if value == nil {
		return nil, nil
	}
	operators, ok := value.(map[string]any)
	if !ok {
		return nil, syntax()
	}
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		operator, ok := parseOperator(name)
		if !ok {
			return nil, malformed("Invalid Condition type : %s.", name)
		}
		keys, ok := operators[name].(map[string]any)
		if !ok {
			return nil, syntax()
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			c := condition{operator: operator, key: key}
			if c.values, err = scalars(keys[key]); err != nil {
				return nil, err
			}
			if !strings.Contains(key, ":") {
				return nil, malformed("Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.")
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// scalars returns a condition's values. Numbers and booleans may stand without quotes.
func scalars(value any) ([]string, error) {
	items, ok := value.([]any)
	if !ok {
		items = []any{value}
	}
	list := make([]string, len(items))
	for i, item := range items {
		switch v := item.(type) {
		case string:
			list[i] = v
		case bool:
			list[i] = strconv.FormatBool(v)
		case float64:
			list[i] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			return nil, syntax()
		}
	}
	return list, nil
}
