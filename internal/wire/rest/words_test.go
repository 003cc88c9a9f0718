package rest

import "testing"

// TestWords: S3 keeps what encoded words of RFC 2047 stand for, and answers with them where a value isn't ASCII.
func TestWords(t *testing.T) {
	for _, c := range []struct{ sent, kept, answered string }{
		{"plain", "plain", "plain"},
		{"=?UTF-8?B?Y2Fmw6k=?=", "café", "=?UTF-8?B?Y2Fmw6k=?="},
		{"=?utf-8?q?caf=C3=A9?= =?utf-8?q?s?=", "cafés", "=?UTF-8?B?Y2Fmw6lz?="},
		{"=?iso-8859-1?Q?caf=E9?=", "café", "=?UTF-8?B?Y2Fmw6k=?="},
		{"=?UTF-8?Q?plain?=", "plain", "plain"},
		{"café", "café", "=?UTF-8?B?Y2Fmw6k=?="},
		{"=?koi8-r?B?xw==?=", "=?koi8-r?B?xw==?=", "=?koi8-r?B?xw==?="},
		{"=?UTF-8?B?%?=", "=?UTF-8?B?%?=", "=?UTF-8?B?%?="},
		{"=?UTF-8?B?DQpTZXQtQ29va2llOiBh?=", "\r\nSet-Cookie: a", "  Set-Cookie: a"},
	} {
		kept := decodeWords(c.sent)
		if kept != c.kept || encodeWord(kept) != c.answered {
			t.Errorf("%s: kept %q, answered %q", c.sent, kept, encodeWord(kept))
		}
	}
}
