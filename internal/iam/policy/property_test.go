package policy

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	actionsDrawn   = rapid.SampledFrom([]string{"*", "s3:*", "s3:Get*", "s3:PutObject", "ecs:RunTask", "s3:?etObject"})
	resourcesDrawn = rapid.SampledFrom([]string{"*", "arn:aws:s3:::a/*", "arn:aws:s3:::b/*", "arn:aws:s3:::${aws:username}/*"})
	conditionDrawn = rapid.SampledFrom([]string{
		"", `{"Bool": {"aws:SecureTransport": "true"}}`, `{"StringNotEquals": {"aws:username": "a"}}`, `{"Null": {"aws:username": "true"}}`,
	})
)

type drawnStatement struct {
	Effect      string
	Action      []string `json:",omitempty"`
	NotAction   []string `json:",omitempty"`
	Resource    []string `json:",omitempty"`
	NotResource []string `json:",omitempty"`
	Principal   any      `json:",omitempty"`
	Condition   any      `json:",omitempty"`
}

func drawStatement(t *rapid.T, effect string) (s drawnStatement) {
	s.Effect = effect
	if s.Action = rapid.SliceOfN(actionsDrawn, 1, 2).Draw(t, "actions"); rapid.Bool().Draw(t, "NotAction") {
		s.NotAction = s.Action
		s.Action = nil
	}
	if s.Resource = rapid.SliceOfN(resourcesDrawn, 1, 2).Draw(t, "resources"); rapid.Bool().Draw(t, "NotResource") {
		s.NotResource = s.Resource
		s.Resource = nil
	}
	if c := conditionDrawn.Draw(t, "condition"); c != "" {
		s.Condition = json.RawMessage(c)
	}
	return s
}

func drawStatements(t *rapid.T) (all []drawnStatement) {
	for range rapid.IntRange(1, 4).Draw(t, "statements") {
		all = append(all, drawStatement(t, rapid.SampledFrom([]string{"Allow", "Allow", "Deny"}).Draw(t, "effect")))
	}
	return all
}

func parsed(t *rapid.T, kind Kind, statements []drawnStatement) *Policy {
	if kind == Resource {
		statements = slices.Clone(statements)
		for i := range statements {
			statements[i].Principal = "*"
		}
	}
	b, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(kind, string(b))
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return p
}

func drawRequest(t *rapid.T) Request {
	r := Request{
		Principal: rapid.SampledFrom([]Principal{{ARN: carlos}, {ARN: session, Role: worker}, {}}).Draw(t, "principal"),
		Action:    rapid.SampledFrom([]string{"s3:GetObject", "s3:PutObject", "ecs:RunTask"}).Draw(t, "action"),
		Resource:  rapid.SampledFrom([]string{"arn:aws:s3:::a/x", "arn:aws:s3:::b/x", "*"}).Draw(t, "resource"),
		Context:   Context{},
	}
	if rapid.Bool().Draw(t, "named") {
		r.Context.Set("aws:username", rapid.SampledFrom([]string{"a", "b", "*"}).Draw(t, "username"))
	}
	if rapid.Bool().Draw(t, "secure") {
		r.Context.Set("aws:SecureTransport", "true")
	}
	return r
}

// drawPolicies draws all policies of a request, and the statements of the identity's.
func drawPolicies(t *rapid.T) (Policies, []drawnStatement) {
	statements := drawStatements(t)
	p := Policies{Identity: []*Policy{parsed(t, Identity, statements)}}
	if rapid.Bool().Draw(t, "has a resource's policy") {
		p.Resource = parsed(t, Resource, drawStatements(t))
	}
	if rapid.Bool().Draw(t, "has a boundary") {
		p.Boundary = parsed(t, Identity, drawStatements(t))
	}
	if rapid.Bool().Draw(t, "has a session's policy") {
		p.Session = []*Policy{parsed(t, Identity, drawStatements(t))}
	}
	return p, statements
}

func TestWhatIsAddedAllowsNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		before, statements := drawPolicies(t)
		effect := Evaluate(r, before).Effect
		denying := before
		denying.Identity = []*Policy{parsed(t, Identity, append(slices.Clone(statements), drawStatement(t, "Deny")))}
		if got := Evaluate(r, denying).Effect; got == Allowed && effect != Allowed {
			t.Fatal("a Deny was added, and more is allowed")
		}
		bounded := before
		if bounded.Boundary = parsed(t, Identity, drawStatements(t)); before.Boundary == nil {
			if got := Evaluate(r, bounded).Effect; got == Allowed && effect != Allowed {
				t.Fatal("a boundary was set, and more is allowed")
			}
		}
		limited := before
		if limited.Session = []*Policy{parsed(t, Identity, drawStatements(t))}; before.Session == nil {
			if got := Evaluate(r, limited).Effect; got == Allowed && effect != Allowed {
				t.Fatal("a session's policy was set, and more is allowed")
			}
		}
		allowing := before
		allowing.Identity = append(slices.Clone(before.Identity), parsed(t, Identity, []drawnStatement{drawStatement(t, "Allow")}))
		if got := Evaluate(r, allowing).Effect; effect == Allowed && got != Allowed {
			t.Fatal("an Allow was added, and less is allowed")
		}
	})
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		p, statements := drawPolicies(t)
		other := p
		shuffled := rapid.Permutation(statements).Draw(t, "order")
		other.Identity = nil
		for i := range shuffled {
			other.Identity = append(other.Identity, parsed(t, Identity, shuffled[i:i+1]))
		}
		a, b := Evaluate(r, p), Evaluate(r, other)
		if a.Effect != b.Effect || a.Reason(r.Action) != b.Reason(r.Action) {
			t.Fatalf("%v, and in another order %v", a, b)
		}
	})
}

// TestNotIsTheOpposite: without a variable, a statement matches either by an element or by its Not… form.
func TestNotIsTheOpposite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		actions := rapid.SliceOfN(actionsDrawn, 1, 3).Draw(t, "actions")
		all := []string{"*"}
		plain := parsed(t, Identity, []drawnStatement{{Effect: "Deny", Action: actions, Resource: all}})
		not := parsed(t, Identity, []drawnStatement{{Effect: "Deny", NotAction: actions, Resource: all}})
		a := Evaluate(r, Policies{Identity: []*Policy{plain}}).Effect == ExplicitDeny
		b := Evaluate(r, Policies{Identity: []*Policy{not}}).Effect == ExplicitDeny
		if a == b {
			t.Fatalf("%v: by Action %v, by NotAction %v", actions, a, b)
		}
	})
}

// TestWildcardsMatchAsRegularExpressionsDo compares with Go's, whose time is linear too.
func TestWildcardsMatchAsRegularExpressionsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 12, -1).Draw(t, "text")
		glob := rapid.StringOfN(rapid.RuneFrom([]rune("ab*?é.")), 0, 8, -1).Draw(t, "pattern")
		expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(glob))
		if got, want := wild(glob).matches(text), regexp.MustCompile("^(?s:"+expression+")$").MatchString(text); got != want {
			t.Fatalf("%q matches %q: %v, want %v", glob, text, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(identity("Allow", `"Action": "*", "Resource": "*", "Condition": {"ForAllValues:StringLikeIfExists": {"aws:a": [1, true, "${x}"]}}`))
	f.Add(identity("Deny", `"NotAction": ["sts:AssumeRole"], "NotPrincipal": {"AWS": ["111122223333"]}`))
	f.Add(`{"Statement": [{"Sid": "a"}, 1]}`)
	f.Fuzz(func(t *testing.T, document string) {
		for _, kind := range []Kind{Identity, Resource, Trust} {
			p, err := Parse(kind, document)
			if err != nil {
				continue
			}
			for _, s := range p.Statements {
				if s.Start < 0 || s.End > int64(len(document)) || document[s.Start] != '{' || document[s.End-1] != '}' {
					t.Fatalf("a statement from %d to %d", s.Start, s.End)
				}
			}
		}
	})
}

func FuzzEvaluate(f *testing.F) {
	f.Add(identity("Allow", `"Action": "s3:*", "Resource": "arn:aws:s3:::${aws:username, 'x'}*"`), "s3:GetObject", "arn:aws:s3:::a", "a")
	f.Add(identity("Deny", `"Action": "*", "Resource": "*", "Condition": {"ArnLike": {"aws:username": "arn:*:*:*:*:*"}}`), "a:b", "*", "arn:a:b:c:d:e")
	f.Add(identity("Allow", `"Action": "*", "Resource": "*", "Condition": {"DateLessThan": {"aws:username": "2020"}}`), "a:b", "*", "1")
	f.Fuzz(func(t *testing.T, document, action, resource, value string) {
		p, err := Parse(Identity, document)
		if err != nil {
			return
		}
		r := Request{Principal: Principal{ARN: carlos}, Action: action, Resource: resource, Context: Context{"aws:username": {value}}}
		one := Evaluate(r, Policies{Identity: []*Policy{p}})
		two := Evaluate(r, Policies{Identity: []*Policy{p, p}})
		if one.Effect != two.Effect {
			t.Fatalf("once %v, twice %v", one.Effect, two.Effect)
		}
		if one.Effect != ImplicitDeny && len(one.Matches) == 0 {
			t.Fatal("no statement decided")
		}
	})
}
