// Package authorize says what a call needs: the actions that a policy must allow, the resources that they are on, and the condition keys
// that the call itself gives. It is pure: what an input names is all that it knows, so whoever asks completes ARNs that have a part that
// only a store knows. The files in operations list it for each operation of each service; the plane asks before each call.
package authorize

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/iam/policy"
)

//go:embed operations/*.txt
var files embed.FS

// Table is what the operations of all services need, in one account and region.
type Table struct {
	account  string
	region   string
	services map[string]*service // by the name in signatures
}

// service is what one service's file says.
type service struct {
	operations map[string][]line
	keys       []key
}

// line is one action that an operation needs.
type line struct {
	action    string
	resource  template
	members   []string // whose presence decides whether the action is needed; none if it always is
	needed    bool     // whether it's needed if one of the members is given, or else if none is
	anonymous bool     // whether it needs no permission at all
}

// key is a condition key, and where its values are in an input.
type key struct {
	name   string
	values template
}

// Call is a call of an operation.
type Call struct {
	Service   string // its name in signatures: "ecs"
	Operation string
	Input     any    // a pointer to the SDK's struct
	User      string // the name of the IAM user who calls, if one does
}

// Need is an action on a resource, which a call needs.
type Need struct {
	Action   string // such as s3:GetObject
	Resource string // an ARN, or *
	PassedTo string // the service that gets the role, for iam:PassRole
}

// New returns the table for an account in a region.
func New(account, region string) (*Table, error) {
	t := &Table{account: account, region: region, services: map[string]*service{}}
	found, err := files.ReadDir("operations")
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		text, err := files.ReadFile(path.Join("operations", f.Name()))
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(f.Name(), ".txt")
		if t.services[name], err = t.parse(name, string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return t, nil
}

// parse reads a service's file. Its lines are those of keys, "key NAME VALUES", and of what operations need, "OPERATION RESOURCE ACTION if
// MEMBER,MEMBER", where the action may be left out if it has the operation's name.
func (t *Table) parse(name, text string) (*service, error) {
	s := &service{operations: map[string][]line{}}
	for row := range strings.Lines(text) {
		fields := strings.Fields(row)
		switch {
		case len(fields) == 0:
		case fields[0] == "key" && len(fields) == 3:
			s.keys = append(s.keys, key{fields[1], t.template(fields[1], fields[2])})
		case len(fields) == 2 || len(fields) == 3 || len(fields) == 5 && (fields[3] == "if" || fields[3] == "unless"):
			s.operations[fields[0]] = append(s.operations[fields[0]], t.line(name, fields))
		default:
			return nil, fmt.Errorf("malformed line: %s", strings.TrimSpace(row))
		}
	}
	return s, nil
}

// line reads a line of what an operation needs.
func (t *Table) line(service string, fields []string) line {
	l := line{action: Action(service, fields[0]), anonymous: fields[1] == "none"}
	if len(fields) > 2 {
		l.action = fields[2]
	}
	if len(fields) == 5 {
		l.needed = fields[3] == "if"
		l.members = strings.Split(fields[4], ",")
	}
	l.resource = t.template(l.action, fields[1])
	return l
}

// Action returns the action that stands for an operation in policies, unless the table has others for it.
func Action(service, operation string) string { return prefixOf(service) + ":" + operation }

// prefixOf returns what a service's actions begin with.
func prefixOf(service string) string {
	if service == "monitoring" {
		return "cloudwatch"
	}
	return service
}

// Knows reports whether the table has an operation.
func (t *Table) Knows(service, operation string) bool {
	s := t.services[service]
	return s != nil && s.operations[operation] != nil
}

// Members returns the paths of the members of its input that what an operation needs depends on.
func (t *Table) Members(service, operation string) (all []string) {
	for _, l := range t.services[service].operations[operation] {
		all = append(all, l.members...)
		for _, p := range l.resource.parts {
			all = append(all, p.member)
		}
	}
	for i, member := range all {
		if r, special := readers[member]; special {
			all[i] = r.member
		}
	}
	return slices.DeleteFunc(all, func(member string) bool { return member == "" })
}

// Operations returns the operations of a service, sorted.
func (t *Table) Operations(service string) []string {
	if t.services[service] == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.services[service].operations))
}

// Needs returns all that a call needs. An operation that isn't in the table needs what nobody names: its action on everything.
func (t *Table) Needs(c Call) (all []Need) {
	if !t.Knows(c.Service, c.Operation) {
		return []Need{{Action: Action(c.Service, c.Operation), Resource: "*"}}
	}
	in := input{reflect.ValueOf(c.Input), c.User}
	for _, l := range t.services[c.Service].operations[c.Operation] {
		if l.anonymous || !l.applies(in) {
			continue
		}
		for _, resource := range l.resource.fill(in) {
			n := Need{Action: l.action, Resource: normal(resource)}
			if l.action == passRole {
				n.PassedTo = passedTo(c)
			}
			all = append(all, n)
			if secret, ok := t.secretOf(n); ok {
				all = append(all, secret)
			}
		}
	}
	return all
}

// applies reports whether a line's action is needed for an input.
func (l *line) applies(in input) bool {
	if len(l.members) == 0 {
		return true
	}
	given := slices.ContainsFunc(l.members, func(m string) bool { return len(in.values(m)) > 0 })
	return given == l.needed
}

const passRole = "iam:PassRole"

// passedTo returns the service that gets the role that a call hands on.
func passedTo(c Call) string {
	switch {
	case c.Service == "ecs" && c.Operation != "CreateService" && c.Operation != "UpdateService":
		return "ecs-tasks.amazonaws.com"
	case c.Service == "iam":
		return "ec2.amazonaws.com"
	}
	return c.Service + ".amazonaws.com"
}

// parameterARN is in the ARNs of parameters.
const parameterARN = ":parameter/"

// normal returns a parameter's ARN as policies have it: with one slash, whatever its name begins with, and without a version or a label.
// Other ARNs are as they were.
func normal(arn string) string {
	before, name, found := strings.Cut(arn, parameterARN)
	if !found || !strings.HasPrefix(arn, "arn:aws:ssm:") {
		return arn
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(name), "/"), ":")
	return before + parameterARN + name
}

// secretOf returns what reading a parameter needs besides, if it stands for a secret of Secrets Manager.
func (t *Table) secretOf(n Need) (Need, bool) {
	_, secret, ok := strings.Cut(n.Resource, parameterARN+"aws/reference/secretsmanager/")
	if !ok {
		return Need{}, false
	}
	const action = "secretsmanager:GetSecretValue"
	return Need{Action: action, Resource: t.prefix(action) + "secret:" + secret}, true
}

// Keys returns the condition keys that a call's input gives.
func (t *Table) Keys(c Call) policy.Context {
	known := policy.Context{}
	s := t.services[c.Service]
	if s == nil {
		return known
	}
	in := input{reflect.ValueOf(c.Input), c.User}
	for _, k := range s.keys {
		last := k.values.parts[len(k.values.parts)-1]
		switch {
		case last.member == "":
		case len(in.values(last.member)) > 0:
			known.Set(k.name, k.values.fill(in)...)
		case in.givesEmpty(last.member): // a condition may ask for that
			known.Set(k.name, "")
		}
	}
	in.addTags(known)
	return known
}

// Message returns AWS's message for a call that policies don't allow. Services word it differently.
func Message(service, principal string, n Need, d policy.Decision) string {
	action, resource := n.Action, n.Resource
	lead := ""
	switch service {
	case "sqs":
		action = strings.ToLower(action)
	case "sns":
		action = "SNS" + strings.TrimPrefix(action, "sns")
	case "s3":
		resource = `"` + resource + `"`
	case "ec2":
		lead = "You are not authorized to perform this operation. "
	}
	text := lead + "User: " + principal + " is not authorized to perform: " + action
	if service != "ec2" || resource != "*" {
		text += " on resource: " + resource
	}
	return text + " " + d.Reason(action)
}
