package filterpolicy

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestScripts runs the files in testdata: a policy, and messages that it takes and doesn't.
func TestScripts(t *testing.T) {
	for _, c := range []struct {
		file  string
		match func(p *Policy, message string) bool
		scope Scope
	}{
		{"testdata/body.txt", (*Policy).MatchBody, Body},
		{"testdata/attributes.txt", func(p *Policy, message string) bool {
			var attributes map[string]Attribute
			if err := json.Unmarshal([]byte(message), &attributes); err != nil {
				t.Fatalf("%s: %v", message, err)
			}
			return p.MatchAttributes(attributes)
		}, Attributes},
	} {
		f, err := os.Open(c.file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var p *Policy
		var policy string
		cases := 0
		for lines := bufio.NewScanner(f); lines.Scan(); {
			verb, rest, _ := strings.Cut(lines.Text(), " ")
			switch verb {
			case "policy":
				policy = rest
				if p, err = Parse(c.scope, rest); err != nil {
					t.Fatalf("%s: %s: %v", c.file, rest, err)
				}
			case "yes", "no":
				cases++
				if got := c.match(p, rest); got != (verb == "yes") {
					t.Errorf("%s: %s takes %s: %t", c.file, policy, rest, got)
				}
			case "", "#":
			default:
				t.Fatalf("%s: %q", c.file, lines.Text())
			}
		}
		if cases < 20 {
			t.Errorf("%s has only %d cases", c.file, cases)
		}
	}
}

// TestRefusals: the words are those that SNS was recorded to say, but for where in the text it is.
func TestRefusals(t *testing.T) {
	for policy, want := range map[string]string{
		`[]`:                                                        "FilterPolicy: Filter is not an object",
		`null`:                                                      "FilterPolicy: Filter is not an object",
		`{"k":"v"}`:                                                 `FilterPolicy: "k" must be an object or an array`,
		`{"k":[]}`:                                                  "FilterPolicy: Empty arrays are not allowed",
		`{"k":[["v"]]}`:                                             "FilterPolicy: Match value must be String, number, true, false, or null",
		`{"k":[{"like":true}]}`:                                     "FilterPolicy: Unrecognized match type like",
		`{"k":[{}]}`:                                                "FilterPolicy: Only one key allowed in match expression",
		`{"k":[{"prefix":"a","suffix":"b"}]}`:                       "FilterPolicy: Only one key allowed in match expression",
		`{"k":[{"suffix":100}]}`:                                    "FilterPolicy: suffix match pattern must be a string",
		`{"k":[{"equals-ignore-case":null}]}`:                       "FilterPolicy: equals-ignore-case match pattern must be a string",
		`{"k":[{"wildcard":"a**"}]}`:                                "FilterPolicy: Consecutive wildcard characters at pos 1",
		`{"k":[{"wildcard":"a\\b"}]}`:                               "FilterPolicy: Invalid escape character at pos 1",
		`{"k":[{"exists":"no"}]}`:                                   "FilterPolicy: exists match pattern must be either true or false.",
		`{"k":[{"anything-but":{"suffix":"v"}}]}`:                   "FilterPolicy: Unsupported anything-but pattern: suffix",
		`{"k":[{"anything-but":{"prefix":1}}]}`:                     "FilterPolicy: prefix match pattern must be a string",
		`{"k":[{"cidr":["10.0.0.0/8"]}]}`:                           "FilterPolicy: prefix match pattern must be a string",
		`{"k":[{"cidr":"10.0.0.0"}]}`:                               "FilterPolicy: Malformed CIDR, one '/' required",
		`{"k":[{"cidr":"10.0.0.0/x"}]}`:                             "FilterPolicy: Malformed CIDR, mask bits must be an integer",
		`{"k":[{"cidr":"10.0/8"}]}`:                                 "FilterPolicy: Nonstandard IP address: 10.0",
		`{"k":[{"cidr":"10.0.0.0/33"}]}`:                            "FilterPolicy: Malformed CIDR, mask bits must not be 33",
		`{"k":[{"numeric":[]}]}`:                                    "FilterPolicy: Invalid member in numeric match: ]",
		`{"k":[{"numeric":[1,"<"]}]}`:                               "FilterPolicy: Invalid member in numeric match: 1",
		`{"k":[{"numeric":["is"]}]}`:                                "FilterPolicy: Unrecognized numeric range operator: is",
		`{"k":[{"numeric":["=","0"]}]}`:                             "FilterPolicy: Value of equals must be numeric",
		`{"k":[{"numeric":[">="]}]}`:                                "FilterPolicy: Value of >= must be numeric",
		`{"k":[{"numeric":["<",100,">",10]}]}`:                      "FilterPolicy: Too many elements in numeric expression",
		`{"k":[{"numeric":[">",1,">",2]}]}`:                         "FilterPolicy: Bad numeric range operator: >",
		`{"k":[{"numeric":[">",3,"<",1]}]}`:                         "FilterPolicy: Bottom must be less than top",
		`{"k":[{"numeric":[">",20,30]}]}`:                           "FilterPolicy: Bad value in numeric range: 30",
		`{"k":[{"numeric":[">",20,"<"]}]}`:                          "FilterPolicy: Value of < must be numeric",
		`{"k":[{"numeric":[">",20,"<",30,"<",50]}]}`:                "FilterPolicy: Too many terms in numeric range expression",
		`{"a":[1],"b":[1],"c":[1],"d":[1],"e":[1],"f":[1]}`:         "FilterPolicy: Filter policy can not have more than 5 keys",
		`{"a":{"b":{"c":[1,2,3,4]}},"d":{"e":[1,2,3]},"f":[1,2,3]}`: "FilterPolicy: Filter policy is too complex",
		`{"$or":[{"a":[1]}]}`:                                       "FilterPolicy: Unrecognized match type a",
	} {
		_, err := Parse(Body, policy)
		if refused, ok := errors.AsType[*Error](err); !ok || refused.Error() != want {
			t.Errorf("%s: %v, want %s", policy, err, want)
		}
	}
	if _, err := Parse(Attributes, `{"a":{"b":[1]}}`); err == nil ||
		err.Error() != "Filter policy scope MessageAttributes does not support nested filter policy" {
		t.Errorf("nested: %v", err)
	}
	if _, err := Parse(Body, "{bad"); err == nil || !strings.HasPrefix(err.Error(), "FilterPolicy: failed to parse JSON.") {
		t.Errorf("no JSON: %v", err)
	}
	if _, err := Parse(Body, strings.Repeat(`{"a":`, 9000)+"[1]"+strings.Repeat("}", 9000)); err == nil {
		t.Error("a policy that is 9000 deep is taken")
	}
}

// TestEveryMessageMatchesItself: a policy made of a message's own properties takes the message, and with one value changed doesn't.
func TestEveryMessageMatchesItself(t *testing.T) {
	scalars := rapid.OneOf(rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Float64Range(-1e9, 1e9), func(n float64) any { return n }), rapid.Just[any](true), rapid.Just[any](nil))
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), scalars, 1, 5).Draw(t, "message")
		policy := map[string]any{}
		for name, value := range message {
			policy[name] = []any{value}
		}
		p, err := Parse(Body, mustJSON(t, policy))
		if err != nil {
			t.Fatal(err)
		}
		body := mustJSON(t, map[string]any{"more": 1})
		if !p.MatchBody(mustJSON(t, message)) || p.MatchBody(body) && len(message) > 0 && message["more"] == nil {
			t.Fatalf("%v doesn't take its message, or takes another", policy)
		}
		for name := range message {
			message[name] = "something else that nobody wrote"
			if p.MatchBody(mustJSON(t, message)) {
				t.Fatalf("%v takes %v", policy, message)
			}
			break
		}
	})
}

func mustJSON(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func FuzzParse(f *testing.F) {
	f.Add(`{"a":{"b":["x",1,null,true,{"prefix":"p"}]}}`, `{"a":[{"b":"x"},[{"b":[1]}]]}`)
	f.Add(`{"$or":[{"a":[{"exists":false}]},{"b.c":[{"numeric":[">",1,"<=",2]}]}]}`, `{"b":{"c":2}}`)
	f.Add(`{"ip":[{"cidr":"10.0.0.0/8"},{"wildcard":"a*b*"},{"anything-but":["x"]},{"anything-but":{"prefix":"y"}}]}`, `{"ip":"10.1.2.3"}`)
	f.Fuzz(func(t *testing.T, policy, body string) {
		for _, scope := range []Scope{Attributes, Body} {
			p, err := Parse(scope, policy)
			if _, ok := errors.AsType[*Error](err); err != nil && !ok {
				t.Fatalf("%v is of another type", err)
			}
			if err != nil {
				continue
			}
			p.MatchBody(body)
			p.MatchAttributes(map[string]Attribute{"a": {"String", body}, "b": {"String.Array", body}, "ip": {"Number", body}})
		}
	})
}
