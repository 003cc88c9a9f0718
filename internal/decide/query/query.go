// Package query is the cluster query language: the expressions of memberOf placement constraints and
// of ListContainerInstances' filter. Parse makes an expression, Eval asks it of one container instance.
// It is pure, and follows
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cluster-query-language.html
package query

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Subject is what an expression can ask of a container instance.
type Subject interface {
	AgentConnected() bool
	AgentVersion() string
	Attribute(name string) (value string, ok bool)
	EC2InstanceID() string
	RegisteredAt() time.Time
	RunningTasksCount() int
	// TaskGroup says whether a task of the group runs on the instance.
	TaskGroup(group string) bool
}

// Expression is a parsed expression. It may be used by many goroutines.
type Expression struct {
	root node
	text string
}

// Eval says whether the expression holds for the instance.
func (e *Expression) Eval(s Subject) bool { return e.root.eval(s) }

// String is the text that the expression was parsed from.
func (e *Expression) String() string { return e.text }

// node is a part of an expression that is true or false.
type node interface{ eval(Subject) bool }

type and struct{ left, right node }
type or struct{ left, right node }
type not struct{ of node }

func (n and) eval(s Subject) bool { return n.left.eval(s) && n.right.eval(s) }
func (n or) eval(s Subject) bool  { return n.left.eval(s) || n.right.eval(s) }
func (n not) eval(s Subject) bool { return !n.of.eval(s) }

// comparison is one subject compared with one argument.
type comparison struct {
	subject subject
	op      operator
	args    []string
	pattern *regexp.Regexp // for matches
}

// subject names what of the instance is compared.
type subject struct {
	kind subjectKind
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

type operator int

const (
	equals operator = iota
	notEquals
	greater
	greaterEqual
	less
	lessEqual
	exists
	notExists
	in
	notIn
	matches
	notMatches
)

func (c comparison) eval(s Subject) bool {
	if c.subject.kind == taskGroup {
		return c.evalGroup(s)
	}
	value, ok := c.subject.value(s)
	switch c.op {
	case exists:
		return ok
	case notExists:
		return !ok
	case notEquals:
		return !ok || value != c.args[0]
	case notIn:
		return !ok || !contains(c.args, value)
	case notMatches:
		return !ok || !c.pattern.MatchString(value)
	}
	if !ok {
		return false
	}
	switch c.op {
	case equals:
		return compare(c.subject.kind, value, c.args[0]) == 0
	case greater:
		return compare(c.subject.kind, value, c.args[0]) > 0
	case greaterEqual:
		return compare(c.subject.kind, value, c.args[0]) >= 0
	case less:
		return compare(c.subject.kind, value, c.args[0]) < 0
	case lessEqual:
		return compare(c.subject.kind, value, c.args[0]) <= 0
	case in:
		return contains(c.args, value)
	}
	return c.pattern.MatchString(value)
}

// evalGroup asks whether tasks of a group run on the instance: that has many values, or none.
func (c comparison) evalGroup(s Subject) bool {
	some := false
	for _, g := range c.args {
		some = some || s.TaskGroup(g)
	}
	return some == (c.op == equals || c.op == in)
}

// value is the instance's own value as text, and whether it has one.
func (b subject) value(s Subject) (string, bool) {
	switch b.kind {
	case agentConnected:
		return strconv.FormatBool(s.AgentConnected()), true
	case agentVersion:
		v := s.AgentVersion()
		return v, v != ""
	case attribute:
		return s.Attribute(b.name)
	case ec2InstanceID:
		id := s.EC2InstanceID()
		return id, id != ""
	case registeredAt:
		return s.RegisteredAt().UTC().Format(time.RFC3339), true
	}
	return strconv.Itoa(s.RunningTasksCount()), true
}

// compare orders two values as the subject's type has it: dates, numbers, versions, else text.
func compare(kind subjectKind, a, b string) int {
	switch kind {
	case registeredAt:
		x, _ := parseTime(a)
		y, _ := parseTime(b)
		return x.Compare(y)
	case agentVersion:
		return compareVersions(a, b)
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// compareVersions orders 1.9.0 before 1.10.0.
func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		m, n := versionPart(x, i), versionPart(y, i)
		if m != n {
			return m - n
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

// parseTime reads a date as the language writes it: 2018-06-18T22:28:28+00:00, or the day alone.
func parseTime(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	return time.Parse(time.DateOnly, s)
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
