package query

import (
	"strings"
	"testing"
	"time"
)

type instance struct{}

func (instance) AgentConnected() bool   { return true }
func (instance) AgentVersion() string   { return "1.10.2" }
func (instance) EC2InstanceID() string  { return "i-abc" }
func (instance) RunningTasksCount() int { return 3 }
func (instance) TaskGroup(g string) bool {
	return g == "service:web" || g == "family:train"
}
func (instance) RegisteredAt() time.Time { return time.Date(2018, 6, 18, 22, 28, 28, 5e8, time.UTC) }
func (instance) Attribute(name string) (string, bool) {
	v, ok := map[string]string{
		"ecs.instance-type":     "p3.16xlarge",
		"ecs.availability-zone": "us-east-1a",
		"stack":                 "prod",
		"rack":                  "7",
		"flag":                  "",
	}[name]
	return v, ok
}

// TestOutcomes: what isn't known may be either way, and decides only where the rest doesn't.
func TestOutcomes(t *testing.T) {
	for text, want := range map[string][2]bool{
		`attribute:type == g4dn`:                                  {true, true},
		`attribute:type == p3`:                                    {false, false},
		`attribute:type =~ g4.* and not(attribute:absent exists)`: {true, true},
		`attribute:absent == x`:                                   {false, false},
		`attribute:absent != x`:                                   {true, true},
		`attribute:absent > 3`:                                    {false, false},
		`attribute:other == x`:                                    {true, false},
		`attribute:other != x`:                                    {true, false},
		`not(attribute:other == x)`:                               {true, false},
		`attribute:type == p3 and attribute:other == x`:           {false, false},
		`attribute:type == p3 or attribute:other == x`:            {true, false},
		`attribute:type == g4dn or attribute:other == x`:          {true, true},
		`attribute:type == g4dn and task:group == web`:            {true, false},
		`attribute:type == p3 and runningTasksCount < 1`:          {false, false},
		`not(attribute:type == p3 and agentVersion > 1.0)`:        {true, true},
		`ec2InstanceId in [i-1] and agentConnected == true`:       {true, false},
	} {
		e, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if may, must := e.Outcomes(Known{Attribute: known}); may != want[0] || must != want[1] {
			t.Errorf("%s: may %v, must %v, want %v", text, may, must, want)
		}
	}
}

// TestOutcomesOfIdle: an instance without tasks is known to have none of any group.
func TestOutcomesOfIdle(t *testing.T) {
	for text, want := range map[string][2]bool{
		`task:group == web`:                             {false, false},
		`task:group != web`:                             {true, true},
		`task:group in [web, family:x]`:                 {false, false},
		`not(task:group == web)`:                        {true, true},
		`runningTasksCount < 1`:                         {true, true},
		`runningTasksCount > 0`:                         {false, false},
		`task:group == web or attribute:type == g4dn`:   {true, true},
		`task:group == web or attribute:other == x`:     {true, false},
		`task:group != web and attribute:other == x`:    {true, false},
		`task:group == web and attribute:type == g4dn`:  {false, false},
		`agentConnected == true and task:group !in [a]`: {true, false},
	} {
		e, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if may, must := e.Outcomes(Known{Attribute: known, Idle: true}); may != want[0] || must != want[1] {
			t.Errorf("%s: may %v, must %v, want %v", text, may, must, want)
		}
	}
}

// known knows two attributes.
func known(name string) (string, bool, bool) {
	switch name {
	case "type":
		return "g4dn", true, true
	case "absent":
		return "", false, true
	}
	return "", false, false
}

func TestEval(t *testing.T) {
	cases := map[string]bool{
		`attribute:ecs.instance-type == p3.16xlarge`:                                true,
		`attribute:ecs.instance-type equals "p3.16xlarge"`:                          true,
		`attribute:ecs.instance-type != p3.16xlarge`:                                false,
		`attribute:ecs.instance-type not_equals p2.xlarge`:                          true,
		`attribute:ecs.instance-type =~ p3.*`:                                       true,
		`attribute:ecs.instance-type matches "p2.*"`:                                false,
		`attribute:ecs.instance-type !~ p2.*`:                                       true,
		`attribute:ecs.instance-type not_matches p3.*`:                              false,
		`attribute:ecs.instance-type =~ 3.16`:                                       false, // the whole value must match
		`attribute:ecs.availability-zone in [us-east-1a, us-east-1b]`:               true,
		`attribute:ecs.availability-zone in ("us-east-1c","us-east-1b")`:            false,
		`attribute:ecs.availability-zone !in [us-east-1c]`:                          true,
		`attribute:ecs.availability-zone not_in [us-east-1a]`:                       false,
		`attribute:stack exists`:                                                    true,
		`attribute:flag exists`:                                                     true,
		`attribute:nothing exists`:                                                  false,
		`attribute:nothing !exists`:                                                 true,
		`attribute:nothing not_exists`:                                              true,
		`attribute:nothing == x`:                                                    false,
		`attribute:nothing != x`:                                                    true,
		`attribute:rack > 6`:                                                        true,
		`attribute:rack greater_than 10`:                                            false,
		`attribute:rack <= 7`:                                                       true,
		`attribute:rack less_than_equal 6`:                                          false,
		`agentConnected == true`:                                                    true,
		`agentVersion >= 1.9.0`:                                                     true, // not as text
		`agentVersion < 1.9.0`:                                                      false,
		`ec2InstanceId in ['i-abc', 'i-def']`:                                       true,
		`registeredAt >= 2018-06-18T22:28:28+00:00`:                                 true,
		`registeredAt > 2018-06-19`:                                                 false,
		`runningTasksCount < 4`:                                                     true,
		`runningTasksCount greater_than_equal 4`:                                    false,
		`task:group == service:web`:                                                 true,
		`task:group != service:web`:                                                 false,
		`task:group in [service:db, family:train]`:                                  true,
		`not(task:group == service:db)`:                                             true,
		`attribute:stack == prod && attribute:rack == 8`:                            false,
		`attribute:stack == prod and (attribute:rack == 8 or attribute:rack == 7)`:  true,
		`attribute:stack==prod&&attribute:rack==7`:                                  true,
		`attribute:stack == x || attribute:rack == 7 && agentConnected == false`:    false, // and binds closer
		`!(attribute:stack == prod)`:                                                false,
		`not attribute:stack == test`:                                               true,
		`(attribute:ecs.instance-type =~ p2.* and attribute:stack == prod) or rack`: false,

		// Attributes are equal as text. They are ordered as numbers if both are numbers.
		`attribute:rack == 7.0`:           false,
		`attribute:rack != 7.0`:           true,
		`attribute:rack >= 7.0`:           true,
		`attribute:nothing < 1`:           false,
		`attribute:nothing not_in [a, b]`: true,

		// Dates are compared as dates, to the second, however they are written.
		`registeredAt == 2018-06-18T22:28:28+00:00`:  true,
		`registeredAt == 2018-06-18T22:28:28Z`:       true,
		`registeredAt == 2018-06-18T22:28:28`:        true, // without a zone it is UTC
		`registeredAt == 2018-06-19T00:28:28+02:00`:  true,
		`registeredAt != 2018-06-19T00:28:28+02:00`:  false,
		`registeredAt != 2018-06-18T22:28:29Z`:       true,
		`registeredAt > 2018-06-18T22:28:28`:         false,
		`registeredAt <= "2018-06-18T22:28:28"`:      true,
		`registeredAt not_equals 2018-06-18`:         true,
		`registeredAt greater_than_equal 2018-06-18`: true,

		// Versions are compared as versions, counts as numbers.
		`agentVersion == 1.10.2`:      true,
		`agentVersion == 1.10.2.0`:    true,
		`agentVersion != 1.10.2.0`:    false,
		`agentVersion != 1.9.0`:       true,
		`runningTasksCount == 03`:     true,
		`runningTasksCount != 3`:      false,
		`runningTasksCount != 10`:     true,
		`runningTasksCount < 10`:      true,
		`agentConnected in [true]`:    true,
		`agentConnected !~ t.*`:       false,
		`ec2InstanceId not_matches x`: true,

		// An unquoted pattern ends at a blank, && or ||, or a parenthesis that it hasn't opened.
		`attribute:ecs.instance-type =~ (p2|p3)\..*`:                            true,
		`attribute:ecs.instance-type =~ p2.*|p3.*`:                              true,
		`attribute:ecs.instance-type =~ p3\.[0-9]{1,2}xlarge`:                   true,
		`attribute:ecs.instance-type =~ p[0-9,|)]+[.]16xlarge`:                  true,
		`attribute:ecs.instance-type !~ (p2|g5).*`:                              true,
		`(attribute:ecs.instance-type =~ (p2|p3).*)`:                            true,
		`(attribute:stack == prod and attribute:ecs.instance-type =~ (p|g)3.*)`: true,
		`attribute:ecs.instance-type =~ p2.*||attribute:stack == prod`:          true,
		`attribute:ecs.instance-type =~ p3.*&&attribute:stack == test`:          false,
		`attribute:stack =~ \(prod\)`:                                           false,
		`attribute:stack =~ []p]rod`:                                            true,
		`not(attribute:stack =~ [^)]rod)`:                                       false,
	}
	for text, want := range cases {
		e, err := Parse(text)
		if strings.HasSuffix(text, "or rack") {
			if err == nil {
				t.Errorf("%s: parsed", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := e.Eval(instance{}); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	cases := map[string]string{
		``:                                  "empty",
		`attribute:a`:                       "at character 12: an operator is missing",
		`attribute:a ==`:                    "a value is missing",
		`attribute:a == "x`:                 "not closed",
		`(attribute:a == x`:                 "closing parenthesis",
		`attribute:a in x`:                  "a list is missing",
		`attribute:a in [x, y`:              "not closed",
		`memory == 3`:                       `"memory" is no subject`,
		`attribute: == 3`:                   "is no subject",
		`attribute:a == x attribute:b == y`: `at character 18: "attribute:b == y" is not expected`,
		`attribute:a =~ "["`:                "no regular expression",
		`registeredAt > soon`:               "no date",
		`task:group > a`:                    "task:group cannot be compared with >; it takes ==, !=, in and !in",
		`task:group exists`:                 "task:group cannot be compared with exists",
		`agentConnected > true`:             "agentConnected cannot be compared with >; it takes ==, !=, =~, !~, in and !in",
		`agentConnected exists`:             "cannot be compared with exists",
		`agentVersion in [1.9.0]`:           "agentVersion cannot be compared with in; it takes ==, !=, >=, >, <= and <",
		`agentVersion =~ 1.*`:               "cannot be compared with =~",
		`agentVersion > new`:                `"new" is no version`,
		`ec2InstanceId !exists`:             "cannot be compared with !exists",
		`ec2InstanceId less_than i-1`:       "cannot be compared with less_than",
		`registeredAt not_in [2018-06-18]`:  "cannot be compared with not_in",
		`registeredAt > 2018-06`:            "no date",
		`runningTasksCount matches 1`:       "cannot be compared with matches",
		`runningTasksCount < few`:           `"few" is no number`,
		`attribute:a =~ `:                   "a value is missing",
		`attribute:a =~ (x`:                 "no regular expression",
		strings.Repeat("!", 100) + "a":      "deeper",
		strings.Repeat("a", 3000):           "at most 2000",
	}
	for text, want := range cases {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`attribute:ecs.instance-type =~ p3.* and (task:group in [a,'b'] or not registeredAt > 2018-06-19)`)
	f.Add(`!((agentVersion >= 1.2)) || attribute:a !exists`)
	f.Add(`ec2InstanceId =~ (i|j)-[a-f,)]{1,3} && runningTasksCount < 3 || registeredAt == 2018-06-18T22:28:28`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		e.Eval(instance{}) // must not panic
		if again, err := Parse(e.String()); err != nil || again.Eval(instance{}) != e.Eval(instance{}) {
			t.Fatalf("%q parses once and not again", text)
		}
	})
}
