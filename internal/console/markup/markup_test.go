package markup

import (
	"strings"
	"testing"
)

func TestElements(t *testing.T) {
	for _, c := range []struct {
		node Node
		want string
	}{
		{E("p", Class("x"), "a", 5, nil, Group{Text("b"), nil}), `<p class="x">a5b</p>`},
		{E("input", If("checked", true), If("disabled", false), A("value", "")), `<input checked value>`},
		{E("a", A("href", `x" onclick="y`), "<script>alert('&')</script>"), `<a href="x&#34; onclick=&#34;y">&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;</a>`},
		{E("b", E("i", []Node{Text("x")})), `<b><i>x</i></b>`},
	} {
		if got := String(c.node); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// TestTextIsText: neither a terminal's escapes nor characters that turn text around come through, in no place.
func TestTextIsText(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[31mred\x07": "␛[31mred␇",
		"a\u202eb\u2066":  "a\ufffdb\ufffd",
		"\xff\xfe":        "\ufffd\ufffd",
		"line\n\tnext":    "line\n\tnext",
		"\u009b31m\x7f":   "\ufffd31m␡",
		"日本 é":            "日本 é",
	} {
		if got := String(Text(text)); got != want {
			t.Errorf("%q shows as %q, want %q", text, got, want)
		}
		if got := String(E("i", A("title", text))); got != `<i title="`+want+`"></i>` {
			t.Errorf("%q in an attribute shows as %q", text, got)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(`"><script>`, "x")
	f.Fuzz(func(t *testing.T, value, text string) {
		got := String(E("p", A("title", value), text))
		if strings.Count(got, "<") != 2 || strings.Count(got, ">") != 2 || strings.Count(got, `"`) > 2 || strings.ContainsRune(got, 0x1b) {
			t.Errorf("%q", got)
		}
	})
}
