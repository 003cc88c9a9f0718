// Package query is the cluster query language: the expressions of memberOf placement constraints and of
// ListContainerInstances' filter. Parse returns an expression, and Eval evaluates it for one container instance. It is pure, and
// follows
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cluster-query-language.html
package query

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Subject is a container instance, as far as expressions can ask about it.
type Subject interface {
	AgentConnected() bool
	AgentVersion() string
	Attribute(name string) (value string, ok bool)
	EC2InstanceID() string
	RegisteredAt() time.Time
	RunningTasksCount() int
	// TaskGroup reports whether a task of the group runs on the instance.
	TaskGroup(group string) bool
}

// Expression is a parsed expression. Several goroutines may use it at once.
type Expression struct {
	root node
	text string
}

// Eval reports whether the expression holds for the instance.
func (e *Expression) Eval(s Subject) bool { return e.root.eval(s) }

// String returns the text that the expression was parsed from.
func (e *Expression) String() string { return e.text }

// Known is what is known of an instance that isn't there yet.
type Known struct {
	// Attribute returns what is known of an attribute. If it isn't known, value and has don't count.
	Attribute func(name string) (value string, has, known bool)
	// Idle means that the instance has no tasks. Otherwise nothing is known of its tasks.
	Idle bool
}

// Outcomes reports whether the expression may hold for an instance of which only this much is known, and whether it must. It may where what
// isn't known decides.
func (e *Expression) Outcomes(k Known) (may, must bool) { return e.root.outcomes(k) }

// node is a part of an expression that is true or false.
type node interface {
	eval(Subject) bool
	outcomes(Known) (may, must bool)
}

type and struct{ left, right node }
type or struct{ left, right node }
type not struct{ of node }

func (n and) eval(s Subject) bool { return n.left.eval(s) && n.right.eval(s) }
func (n or) eval(s Subject) bool  { return n.left.eval(s) || n.right.eval(s) }
func (n not) eval(s Subject) bool { return !n.of.eval(s) }

func (n and) outcomes(k Known) (may, must bool) {
	may, must = n.left.outcomes(k)
	may2, must2 := n.right.outcomes(k)
	return may && may2, must && must2
}

func (n or) outcomes(k Known) (may, must bool) {
	may, must = n.left.outcomes(k)
	may2, must2 := n.right.outcomes(k)
	return may || may2, must || must2
}

func (n not) outcomes(k Known) (may, must bool) {
	may, must = n.of.outcomes(k)
	return !must, !may
}

// comparison is one subject compared with its arguments.
type comparison struct {
	subject subject
	op      operator
	negated bool
	args    []string

	order   func(Subject) (order int, ok bool) // compares the instance's value with the argument
	pattern *regexp.Regexp                     // for matches
}

// subject is the left side of a comparison.
type subject struct {
	kind subjectKind
	text string
	name string // the attribute's
}

type subjectKind int

const (
	agentConnected subjectKind = iota
	agentVersion
	attribute
	ec2InstanceID
	registeredAt
	runningTasksCount
	taskGroup
)

// operator compares values. A negated one, such as != or not_in, holds if its opposite doesn't, so it also holds if the instance
// has no value.
type operator int

const (
	equals operator = iota
	in
	matches
	exists
	greater
	greaterEqual
	less
	lessEqual
)

// needsOrder reports whether the operator is >, >=, < or <=.
func (o operator) needsOrder() bool { return o >= greater }

// hasOrder reports whether the subject's values are versions, dates or numbers, and not just text.
func (b subject) hasOrder() bool {
	return b.kind == agentVersion || b.kind == registeredAt || b.kind == runningTasksCount
}

// takes reports whether the subject can be compared by the operator. AWS's page lists the valid operators of each subject.
func (b subject) takes(op operator) bool {
	switch {
	case b.kind == attribute:
		return true
	case b.hasOrder():
		return op == equals || op.needsOrder()
	case b.kind == taskGroup: // an instance has many task groups, so there is no single text to match
		return op == equals || op == in
	}
	return op == equals || op == in || op == matches
}

// prepare parses the argument once for all instances, and refuses invalid ones.
func (c *comparison) prepare() (err error) {
	switch {
	case c.op == matches:
		if c.pattern, err = regexp.Compile("^(?:" + c.args[0] + ")$"); err != nil {
			return fmt.Errorf("%q is no regular expression: %w", c.args[0], err)
		}
	case c.subject.hasOrder() || c.op.needsOrder():
		c.order, err = c.subject.order(c.args[0])
	}
	return err
}

// order returns a function that compares an instance's value with the argument: as dates, numbers, versions or text.
func (b subject) order(arg string) (func(Subject) (order int, ok bool), error) {
	switch b.kind {
	case registeredAt:
		date, err := parseTime(arg)
		if err != nil {
			return nil, fmt.Errorf("%q is no date, such as 2018-06-18T22:28:28+00:00", arg)
		}
		return func(s Subject) (int, bool) {
			return s.RegisteredAt().Truncate(time.Second).Compare(date), true // expressions write dates to the second
		}, nil
	case runningTasksCount:
		count, err := strconv.Atoi(arg)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of tasks", arg)
		}
		return func(s Subject) (int, bool) { return cmp.Compare(s.RunningTasksCount(), count), true }, nil
	case agentVersion:
		if !version.MatchString(arg) {
			return nil, fmt.Errorf("%q is no version, such as 1.14.5", arg)
		}
		return func(s Subject) (int, bool) {
			own := s.AgentVersion()
			return compareVersions(own, arg), own != ""
		}, nil
	}
	return func(s Subject) (int, bool) {
		own, ok := s.Attribute(b.name)
		return compareText(own, arg), ok
	}, nil
}

func (c comparison) eval(s Subject) bool { return c.holds(s) != c.negated }

func (c comparison) outcomes(k Known) (may, must bool) {
	switch c.subject.kind {
	case attribute:
		value, has, known := k.Attribute(c.subject.name)
		if !known {
			return true, false
		}
		holds := c.eval(single{value: value, has: has})
		return holds, holds
	case taskGroup, runningTasksCount:
		if k.Idle {
			holds := c.eval(single{})
			return holds, holds
		}
	}
	return true, false
}

// single is an instance without tasks, of which only the attribute that is asked for counts.
type single struct {
	Subject
	value string
	has   bool
}

// Attribute implements Subject.
func (s single) Attribute(string) (string, bool) { return s.value, s.has }

// RunningTasksCount implements Subject.
func (s single) RunningTasksCount() int { return 0 }

// TaskGroup implements Subject.
func (s single) TaskGroup(string) bool { return false }

func (c comparison) holds(s Subject) bool {
	if c.order != nil {
		order, ok := c.order(s)
		return ok && c.op.accepts(order)
	}
	if c.subject.kind == taskGroup {
		return slices.ContainsFunc(c.args, s.TaskGroup)
	}
	value, ok := c.subject.value(s)
	switch c.op {
	case exists:
		return ok
	case matches:
		return ok && c.pattern.MatchString(value)
	}
	return ok && slices.Contains(c.args, value)
}

// accepts reports whether the operator holds for two values in this order.
func (o operator) accepts(order int) bool {
	switch o {
	case greater:
		return order > 0
	case greaterEqual:
		return order >= 0
	case less:
		return order < 0
	case lessEqual:
		return order <= 0
	}
	return order == 0
}

// value returns the instance's value as text, and whether it has one.
func (b subject) value(s Subject) (string, bool) {
	switch b.kind {
	case agentConnected:
		return strconv.FormatBool(s.AgentConnected()), true
	case ec2InstanceID:
		id := s.EC2InstanceID()
		return id, id != ""
	}
	return s.Attribute(b.name)
}

// compareText compares two texts: as numbers if both are numbers, or else letter by letter.
func compareText(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return cmp.Compare(x, y)
}

var version = regexp.MustCompile(`^\d+(\.\d+)*$`)

// compareVersions compares versions part by part, so that 1.9.0 is before 1.10.0.
func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		if order := cmp.Compare(versionPart(x, i), versionPart(y, i)); order != 0 {
			return order
		}
	}
	return 0
}

func versionPart(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, _ := strconv.Atoi(parts[i])
	return n
}

// parseTime parses a date in one of the forms that AWS's page lists. Without a zone it is UTC.
func parseTime(s string) (t time.Time, err error) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err = time.Parse(form, s); err == nil {
			return t, nil
		}
	}
	return t, err
}
