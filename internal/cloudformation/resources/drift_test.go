package resources

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	for _, c := range []struct{ expected, actual, want string }{
		{`{"A": 1, "B": "true", "C": 0, "D": []}`, `{"A": "1", "B": true, "More": 1}`, ""},
		{`{"A": 1}`, `{}`, "/A REMOVE 1 <nil>"},
		{`{"A": {"B": 1, "C": 2}}`, `{"A": {"B": 1, "C": 3, "D": 4}}`, "/A/C NOT_EQUAL 2 3"},
		{`{"a/b~c": "x"}`, `{"a/b~c": "y"}`, "/a~1b~0c NOT_EQUAL x y"},
		{`{"Ids": ["a", "b"]}`, `{"Ids": ["b", "a"]}`, ""},
		{`{"Ids": ["a", "b", "b"]}`, `{"Ids": ["c", "b"]}`, "/Ids/0 REMOVE a <nil>; /Ids/2 REMOVE b <nil>; /Ids/3 ADD <nil> c"},
		{`{"Command": ["a", "b"]}`, `{"Command": ["b", "a"]}`, "/Command/0 NOT_EQUAL a b; /Command/1 NOT_EQUAL b a"},
		{`{"Command": ["a"]}`, `{"Command": ["a", "b"]}`, "/Command/1 ADD <nil> b"},
		{
			`{"Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]}`, `{"Tags": [{"Key": "c", "Value": "3"}, {"Key": "b", "Value": "4"}]}`,
			"/Tags/0 REMOVE map[Key:a Value:1] <nil>; /Tags/1/Value NOT_EQUAL 2 4; /Tags/2 ADD <nil> map[Key:c Value:3]",
		},
		{`{"Rules": [{"Port": 1}, {"Port": 2}]}`, `{"Rules": [{"Port": 2}, {"Port": 3}]}`, "/Rules/0/Port NOT_EQUAL 1 3"},
		{`{"PolicyDocument": {"Statement": {"Action": ["a"]}}}`, `{"PolicyDocument": "{\"Statement\": [{\"Action\": \"a\"}]}"}`, ""},
		{`{"PolicyDocument": {"Statement": [{"Action": ["a", "b"]}]}}`, `{"PolicyDocument": {"Statement": [{"Action": ["b", "a"]}]}}`, ""},
		{
			`{"PolicyDocument": {"Statement": [{"Principal": {"AWS": "x"}}]}}`, `{"PolicyDocument": {"Statement": [{"Principal": {"AWS": "x", "Service": "y"}}]}}`,
			"/PolicyDocument/Statement/0/Principal/Service ADD <nil> y",
		},
		{`{"RedrivePolicy": {"maxReceiveCount": "3"}}`, `{"RedrivePolicy": {"maxReceiveCount": 3}}`, ""},
	} {
		var got []string
		for _, d := range Differences(parse(t, c.expected), parse(t, c.actual)) {
			got = append(got, fmt.Sprint(d.Path, " ", d.Type, " ", d.Expected, " ", d.Actual))
		}
		if got := strings.Join(got, "; "); got != c.want {
			t.Errorf("%s and %s differ in %s, want %s", c.expected, c.actual, got, c.want)
		}
	}
}

func parse(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
