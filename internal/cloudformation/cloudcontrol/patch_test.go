package cloudcontrol

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPatch(t *testing.T) {
	const document = `{"a": 1, "l": ["x", "y"], "o": {"k/1": "v", "~": true}}`
	for _, c := range []struct{ patch, want string }{
		{`[]`, `{"a":1,"l":["x","y"],"o":{"k/1":"v","~":true}}`},
		{`[{"op": "add", "path": "/b", "value": {"c": null}}]`, `{"a":1,"b":{"c":null},"l":["x","y"],"o":{"k/1":"v","~":true}}`},
		{`[{"op": "add", "path": "/l/-", "value": "z"}, {"op": "add", "path": "/l/0", "value": "w"}]`, `{"a":1,"l":["w","x","y","z"],"o":{"k/1":"v","~":true}}`},
		{`[{"op": "replace", "path": "/l/1", "value": 2}, {"op": "remove", "path": "/l/0"}, {"op": "remove", "path": "/o"}]`, `{"a":1,"l":[2]}`},
		{`[{"op": "remove", "path": "/o/k~11"}, {"op": "replace", "path": "/o/~0", "value": false}]`, `{"a":1,"l":["x","y"],"o":{"~":false}}`},
		{`[{"op": "move", "from": "/l", "path": "/o"}, {"op": "copy", "from": "/o", "path": "/o/0"}]`, `{"a":1,"o":[["x","y"],"x","y"]}`},
		{`[{"op": "test", "path": "/a", "value": 1}, {"op": "replace", "path": "", "value": {}}]`, `{}`},
		{`[{"op": "test", "path": "/a", "value": 2}]`, "operation 0 of the patch: the value at /a is another one"},
		{`[{"op": "replace", "path": "/b", "value": 2}]`, "operation 0 of the patch: there is nothing at /b"},
		{`[{"op": "remove", "path": "/l/2"}]`, "operation 0 of the patch: there is nothing at /l/2"},
		{`[{"op": "add", "path": "/l/01", "value": 2}]`, "operation 0 of the patch: there is no element 01"},
		{`[{"op": "add", "path": "/a/b", "value": 2}]`, "operation 0 of the patch: nothing can be put at /a/b"},
		{`[{"op": "add", "path": "a", "value": 2}]`, "operation 0 of the patch: a is no JSON pointer"},
		{`[{"op": "move", "from": "/o", "path": "/o/x"}]`, "operation 0 of the patch: /o can't be moved into itself"},
		{`[{"op": "remove", "path": ""}]`, "operation 0 of the patch: the whole resource can't be removed by a patch"},
		{`[{"op": "add", "path": "/b"}]`, "operation 0 of the patch has no value"},
		{`[{"op": "copy", "path": "/b"}]`, "operation 0 of the patch has no from"},
		{`[{"op": "add", "value": 1}]`, "operation 0 of the patch has no path"},
		{`[{"op": "merge", "path": "/b"}]`, `operation 0 of the patch is "merge", which there is none of`},
		{`{}`, "the patch document is not a JSON array of operations"},
		{"[" + strings.Repeat(`{"op": "copy", "from": "/l", "path": "/l/-"},`, 99) + `{"op": "remove", "path": "/a"}]`, "the patch copies more than 262144 bytes"},
	} {
		before, err := object(document)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		p, err := parsePatch(c.patch)
		if err == nil {
			var after any
			if after, err = p.apply(before); err == nil {
				text, _ := json.Marshal(after)
				got = string(text)
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.patch, got, c.want)
		}
		if again, _ := object(document); jsonOf(before) != jsonOf(again) {
			t.Errorf("%s changes the document itself", c.patch)
		}
	}
}

func FuzzPatch(f *testing.F) {
	f.Add(`{"l": [1, {"a": 2}]}`, `[{"op": "move", "from": "/l/1", "path": "/l/0"}, {"op": "copy", "from": "", "path": "/x"}]`)
	f.Fuzz(func(t *testing.T, document, text string) {
		before, err := object(document)
		if err != nil {
			return
		}
		was := jsonOf(before)
		if p, err := parsePatch(text); err == nil {
			_, _ = p.apply(before)
		}
		if jsonOf(before) != was {
			t.Error("the document itself is changed")
		}
	})
}
